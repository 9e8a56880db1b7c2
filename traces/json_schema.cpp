#include "traces/json_schema.hpp"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "traces/reader.hpp"
#include "traces/value_parser.hpp"
#include "traces/vocabulary.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

constexpr FieldType all_types[] = {
    FieldType::integer,        FieldType::count,    FieldType::boolean, FieldType::name,
    FieldType::text,           FieldType::integers, FieldType::tensor,  FieldType::tensors,
    FieldType::ids_or_tensors, FieldType::session,  FieldType::node,    FieldType::json};

std::string definition_name(FieldType type) {
  switch (type) {
    case FieldType::integer:
      return "integer";
    case FieldType::count:
      return "count";
    case FieldType::boolean:
      return "boolean";
    case FieldType::name:
      return "name";
    case FieldType::text:
      return "text";
    case FieldType::integers:
      return "integers";
    case FieldType::tensor:
      return "tensor";
    case FieldType::tensors:
      return "tensors";
    case FieldType::ids_or_tensors:
      return "ids_or_tensors";
    case FieldType::session:
      return "session";
    case FieldType::node:
      return "node";
    case FieldType::json:
      return "json";
  }
  return {};
}

Json reference(FieldType type) {
  return {{"$ref", "#/$defs/" + definition_name(type)}};
}
Json reference_or_null(FieldType type) {
  if (type == FieldType::json) return reference(type);  // null is a JSON value
  return {{"$ref", "#/$defs/" + definition_name(type) + "_or_null"}};
}
Json null_or(const Json& schema) {
  return {{"anyOf", {schema, {{"type", "null"}}}}};
}

template <typename Number>
Json integer_between(Number least, Number most) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

Json list_of(const Json& item) {
  return {{"type", "array"}, {"items", item}};
}

Json pair_of(const Json& first, const Json& second) {
  return {{"type", "array"}, {"prefixItems", {first, second}}, {"minItems", 2}, {"maxItems", 2}};
}

Json tensor_schema() {
  Json properties;
  for (const FieldRow& row : tensor_fields())
    properties[std::string(name_of(row.field))] = reference(row.type);
  properties["v"] = integer_between<std::int64_t>(0, tensor_version_max);
  return {{"type", "object"}, {"maxProperties", fields_max}, {"properties", properties}};
}

Json schema_of(FieldType type) {
  constexpr auto integer_min = std::numeric_limits<std::int64_t>::min();
  constexpr auto integer_max = std::numeric_limits<std::int64_t>::max();
  Json string = {{"type", "string"}};
  switch (type) {
    case FieldType::integer:
      return integer_between(integer_min, integer_max);
    case FieldType::count:
      return integer_between(std::int64_t{0}, integer_max);
    case FieldType::boolean:
      return {{"type", "boolean"}};
    case FieldType::name:
    case FieldType::text:
      return string;
    case FieldType::integers:
      return list_of(reference(FieldType::integer));
    case FieldType::tensor:
      return tensor_schema();
    case FieldType::tensors: {
      Json list = list_of(reference(FieldType::tensor));
      list["maxItems"] = tensors_max;
      return list;
    }
    case FieldType::ids_or_tensors:
      return {{"anyOf", {list_of(reference(FieldType::count)), reference(FieldType::tensors)}}};
    case FieldType::session:
      return pair_of(string, {{"anyOf", {reference(FieldType::integer), string}}});
    case FieldType::node: {
      const Json number =
          integer_between<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
      return {{"anyOf", {string, pair_of(string, number)}}};
    }
    case FieldType::json:
      return Json::object();
  }
  return {};
}

Json definitions() {
  Json all;
  for (const FieldType type : all_types) {
    Json schema = {{"description", expectation(type)}};
    schema.update(schema_of(type));
    all[definition_name(type)] = schema;
    if (type != FieldType::json) all[definition_name(type) + "_or_null"] = null_or(reference(type));
  }
  return all;
}

Json properties_of_any_kind() {
  Json properties;
  for (const FieldRow& row : context_fields())
    properties[std::string(name_of(row.field))] = reference_or_null(row.type);
  properties["seq"] = reference(FieldType::count);
  properties["kind"] = reference(FieldType::name);
  Json phases = Json::array({nullptr});
  for (std::size_t phase = 1; phase < phase_count; ++phase)
    phases.push_back(name_of(static_cast<Phase>(phase)));
  properties["phase"] = {{"enum", phases}};
  return properties;
}

Json schema_of_kind(const KindRow& row) {
  Json properties = Json::object();
  for (const FieldRow& field : row.fields)
    properties[std::string(name_of(field.field))] = reference_or_null(field.type);
  Json then;
  if (row.kind == Kind::header) {
    then["required"] = {name_of(Field::format), name_of(Field::version)};
    properties["format"] = {{"const", format_name}};
    properties["version"] = {{"const", format_version}};
    properties["seq"] = {{"const", 0}};
  }
  then["properties"] = properties;
  return {{"description", std::string(row.name) + ": " + std::string(row.meaning)},
          {"if", {{"required", {"kind"}}, {"properties", {{"kind", {{"const", row.name}}}}}}},
          {"then", then}};
}

}  // namespace

std::string trace_json_schema() {
  Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "one line of a ckpt-trace, version 1"},
      {"description",
       "Kinds and fields that are not named here may occur. Beyond this schema a trace begins with "
       "its only header, seq increases from line to line, ids are described before they are used, "
       "no field is given twice, integers are written without a fraction or an exponent, and "
       "values nest at most 100 levels deep."},
      {"type", "object"},
      {"required", {"seq", "kind"}},
      {"maxProperties", fields_max},
      {"properties", properties_of_any_kind()}};
  schema["allOf"] = Json::array();
  for (const KindRow& row : kind_rows())
    schema["allOf"].push_back(schema_of_kind(row));
  schema["$defs"] = definitions();
  return schema.dump(2) + "\n";
}

}  // namespace remat
