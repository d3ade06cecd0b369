#include "fucina/jinja/value.h"

#include "fucina/diag/check.h"

namespace fucina::jinja {

Value::Value() = default;
Value::~Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;

Value Value::None() { return Value(); }

Value Value::Bool(bool value) {
  Value out;
  out.kind_ = Kind::kBool;
  out.bool_ = value;
  return out;
}

Value Value::Int(std::int64_t value) {
  Value out;
  out.kind_ = Kind::kInt;
  out.int_ = value;
  return out;
}

Value Value::Number(absl::string_view digits) {
  Value out;
  out.kind_ = Kind::kNumber;
  out.text_ = std::string(digits);
  return out;
}

Value Value::Float(double value) {
  Value out;
  out.kind_ = Kind::kFloat;
  out.float_ = value;
  return out;
}

Value Value::Data(absl::string_view text) {
  Value out;
  out.kind_ = Kind::kString;
  out.text_ = std::string(text);
  return out;
}

Value Value::Trusted(absl::string_view text) {
  Value out = Data(text);
  out.origin_ = Origin::kTemplate;
  return out;
}

Value Value::MakeList(List items) {
  Value out;
  out.kind_ = Kind::kList;
  out.list_ = std::move(items);
  return out;
}

Value Value::MakeMap(Map entries) {
  Value out;
  out.kind_ = Kind::kMap;
  out.map_ = std::move(entries);
  return out;
}

bool Value::bool_value() const {
  FUCINA_CHECK(kind_ == Kind::kBool);
  return bool_;
}

std::int64_t Value::int_value() const {
  FUCINA_CHECK(kind_ == Kind::kInt);
  return int_;
}

double Value::float_value() const {
  FUCINA_CHECK(kind_ == Kind::kFloat);
  return float_;
}

const std::string& Value::text() const {
  FUCINA_CHECK(kind_ == Kind::kString || kind_ == Kind::kNumber);
  return text_;
}

Origin Value::origin() const {
  FUCINA_CHECK(kind_ == Kind::kString);
  return origin_;
}

const Value::List& Value::list() const {
  FUCINA_CHECK(kind_ == Kind::kList);
  return list_;
}

const Value::Map& Value::map() const {
  FUCINA_CHECK(kind_ == Kind::kMap);
  return map_;
}

void Value::Add(Value item) {
  FUCINA_CHECK(kind_ == Kind::kList);
  list_.push_back(std::move(item));
}

void Value::Set(absl::string_view key, Value value) {
  FUCINA_CHECK(kind_ == Kind::kMap);
  for (auto& [name, old] : map_) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  map_.emplace_back(std::string(key), std::move(value));
}

const Value* Value::Find(absl::string_view key) const {
  if (kind_ != Kind::kMap) return nullptr;
  for (const auto& [name, value] : map_) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace fucina::jinja
