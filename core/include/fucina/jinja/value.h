#ifndef FUCINA_JINJA_VALUE_H_
#define FUCINA_JINJA_VALUE_H_

// What a template is rendered with: a small JSON-like value. Maps keep the
// order in which keys were added, because templates print them in that order.
// Plain data; a const Value may be read from several threads.
//
// Every string has an origin. Strings are data unless made with Trusted():
// message texts, tool declarations and everything else that a user or a client
// can choose stays data, so that the tokenizer can refuse control tokens that
// are spelled inside it.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina::jinja {

// Who wrote a byte: the template (or a trusted constant such as the bos token),
// or the data that it was rendered with.
enum class Origin : std::uint8_t { kTemplate, kData };

class FUCINA_API Value {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInt,
    kNumber,  // an integer past 64 bits, kept as its literal text
    kFloat,
    kString,
    kList,
    kMap,
  };
  using List = std::vector<Value>;
  // Insertion order; Set replaces in place, as a Python dict does.
  using Map = std::vector<std::pair<std::string, Value>>;

  Value();  // none
  ~Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;

  static Value None();
  static Value Bool(bool value);
  static Value Int(std::int64_t value);
  // REQUIRES: `digits` is an optional '-' and decimal digits.
  static Value Number(absl::string_view digits);
  static Value Float(double value);
  static Value Data(absl::string_view text);     // a string of data origin
  static Value Trusted(absl::string_view text);  // a string of template origin
  static Value MakeList(List items = {});
  // REQUIRES: no two entries have one key.
  static Value MakeMap(Map entries = {});

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kNone; }

  // REQUIRES: the kind that the name says (kNumber and kString for text).
  bool bool_value() const;
  std::int64_t int_value() const;
  double float_value() const;
  const std::string& text() const;
  Origin origin() const;
  const List& list() const;
  const Map& map() const;

  // Appends to a list. REQUIRES: kind() == kList.
  void Add(Value item);
  // Adds a key or replaces its value. REQUIRES: kind() == kMap. Linear in the
  // number of keys: maps here are message and schema objects.
  void Set(absl::string_view key, Value value);
  // Null when this is no map or the key is absent.
  const Value* Find(absl::string_view key) const;

 private:
  Kind kind_ = Kind::kNone;
  Origin origin_ = Origin::kData;
  bool bool_ = false;
  std::int64_t int_ = 0;
  double float_ = 0;
  std::string text_;
  List list_;
  Map map_;
};

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_VALUE_H_
