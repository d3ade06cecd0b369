#ifndef FUCINA_TESTS_CORE_JINJA_JSON_VALUE_H_
#define FUCINA_TESTS_CORE_JINJA_JSON_VALUE_H_

// JSON of the goldens as the values that templates are rendered with.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "fucina/jinja/value.h"

namespace fucina::jinja {

using Json = nlohmann::ordered_json;

inline Json ReadJson(const std::string& path) {
  std::ifstream in(std::string(FUCINA_SOURCE_DIR) + "/" + path);
  return Json::parse(in);
}

inline Value ToValue(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return Value::Int(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value::Float(json.get<double>());
    case Json::value_t::string:
      return Value::Data(json.get<std::string>());
    case Json::value_t::array: {
      Value out = Value::MakeList();
      for (const Json& item : json) out.Add(ToValue(item));
      return out;
    }
    case Json::value_t::object: {
      Value out = Value::MakeMap();
      for (const auto& [key, item] : json.items()) out.Set(key, ToValue(item));
      return out;
    }
    default:
      return Value::None();
  }
}

inline std::string ReadText(const std::string& path) {
  std::ifstream in(std::string(FUCINA_SOURCE_DIR) + "/" + path,
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace fucina::jinja

#endif  // FUCINA_TESTS_CORE_JINJA_JSON_VALUE_H_
