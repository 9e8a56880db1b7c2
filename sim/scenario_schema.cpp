#include <nlohmann/json.hpp>

#include "model/builders/program_builders.hpp"
#include "model/op_kinds.hpp"
#include "schedules/registry.hpp"
#include "sim/scenario.hpp"
#include "sim/scenario_offload.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

Json text() {
  return {{"type", "string"}};
}
Json flag() {
  return {{"type", "boolean"}};
}
Json integer(std::int64_t least) {
  return {{"type", "integer"}, {"minimum", least}};
}
std::vector<std::string> level_names() {
  return {memory_level_names.begin(), memory_level_names.end()};
}
Json list_of(const Json& items) {
  return {{"type", "array"}, {"items", items}};
}
Json one_of(const std::vector<std::string>& names) {
  return {{"enum", names}};
}
Json object(const Json& properties, const std::vector<std::string>& required) {
  Json schema = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}
Json reference(const std::string& name) {
  return {{"$ref", "#/$defs/" + name}};
}
Json map_of(const Json& values) {
  return {{"type", "object"}, {"additionalProperties", values}};
}

std::vector<std::string> kind_names(bool of_collectives) {
  std::vector<std::string> names;
  for (const OpKind& kind : op_kinds()) {
    if ((kind.exchange != Exchange::none) == of_collectives) names.emplace_back(kind.name);
  }
  return names;
}

std::vector<std::string> protocol_names() {
  std::vector<std::string> names;
  for (const ProtocolRow& row : protocols())
    names.emplace_back(row.name);
  return names;
}

Json checkpoint_schema() {
  return object({{"checkpoint", text()},
                 {"in", list_of(text())},
                 {"body", reference("body")},
                 {"owner", text()},
                 {"reentrant", flag()},
                 {"early_stop", flag()},
                 {"preserve_rng", flag()}},
                {"checkpoint", "body"});
}

Json raise_schema() {
  const Json when = one_of({"forward", "replay", "always", "pack", "unpack"});
  return object({{"raise", text()}, {"in", when}, {"times", integer(1)}}, {"raise"});
}

Json excluded_schema() {
  return object({{"exclude", text()},
                 {"in", list_of(reference("argument"))},
                 {"kwargs", map_of(reference("argument"))},
                 {"out", reference("argument")},
                 {"save_output", flag()},
                 {"hands_over", flag()},
                 {"body", reference("body")}},
                {"exclude", "body"});
}

Json remat_region_schema() {
  return object({{"region", text()},
                 {"recompute", flag()},
                 {"in", list_of(reference("argument"))},
                 {"kwargs", map_of(reference("argument"))},
                 {"out", reference("argument")},
                 {"body", reference("body")}},
                {"region", "recompute", "body"});
}

Json collective_schema() {
  return object({{"collective", one_of(kind_names(true))},
                 {"group", text()},
                 {"in", list_of(text())},
                 {"out", list_of(text())},
                 {"into", text()},
                 {"attrs", {{"type", "object"}}},
                 {"keep", flag()},
                 {"cost_ns", integer(0)},
                 {"gradient_cost_ns", integer(0)}},
                {"collective", "in"});
}

Json statement_schemas() {
  const Json names = list_of(text());
  const Json shape = list_of(integer(0));
  const Json body = reference("body");
  const Json op_rest = {{"in", names},
                        {"out", names},
                        {"attrs", {{"type", "object"}}},
                        {"keep", flag()},
                        {"dtype", reference("dtype")},
                        {"dtypes", list_of(reference("dtype"))},
                        {"shape", shape},
                        {"shapes", list_of(shape)},
                        {"stride", shape},
                        {"saves", names},
                        {"cost_ns", integer(0)},
                        {"gradient_cost_ns", integer(0)},
                        {"replay_offset", integer(0)}};
  const auto op_like = [&](const char* key, const Json& kind) {
    Json properties = {{key, kind}};
    properties.update(op_rest);
    return object(properties, {key, "out"});
  };
  Json in_place = {{"in_place", reference("kind")}};
  in_place.update(op_rest);
  in_place.erase("out");
  for (const char* key : {"dtype", "dtypes", "shape", "shapes", "replay_offset"})
    in_place.erase(key);
  return Json::array(
      {op_like("op", reference("kind")),
       op_like("random", reference("kind")),
       object(in_place, {"in_place", "in"}),
       object({{"view", reference("kind")},
               {"in", names},
               {"out", names},
               {"dtype", reference("dtype")},
               {"shape", shape},
               {"stride", shape},
               {"offset", integer(0)}},
              {"view", "in", "out"}),
       collective_schema(),
       object({{"on_ranks", list_of(integer(0))}, {"body", body}}, {"on_ranks", "body"}),
       object({{"container", text()}, {"in", names}}, {"container", "in"}),
       checkpoint_schema(),
       object({{"unit", text()}, {"in", names}, {"body", body}}, {"unit", "body"}),
       excluded_schema(),
       remat_region_schema(),
       object({{"needs_tensor", text()}}, {"needs_tensor"}),
       object({{"mark", text()}}, {"mark"}),
       object({{"compiled", body}}, {"compiled"}),
       object({{"offload", text()}, {"to", one_of(level_names())}, {"body", body}},
              {"offload", "body"}),
       object({{"call", text()}, {"in", names}, {"out", names}}, {"call", "in", "out"}),
       object({{"branch", one_of({"forward", "replay"})}, {"body", body}}, {"branch", "body"}),
       object({{"no_grad", body}}, {"no_grad"}),
       object({{"catch", body}}, {"catch"}),
       object({{"side_effect", text()}}, {"side_effect"}),
       object({{"update", text()}}, {"update"}),
       raise_schema()});
}

Json program_schema() {
  const Json leaf = object(
      {{"dtype", reference("dtype")}, {"shape", list_of(integer(0))}, {"requires_grad", flag()}},
      {"shape"});
  return object(
      {{"loss", text()},
       {"inputs", map_of(leaf)},
       {"params", map_of(leaf)},
       {"bodies",
        map_of(
            object({{"in", list_of(text())}, {"out", list_of(text())}, {"body", reference("body")}},
                   {"in", "out", "body"}))},
       {"stages",
        {{"type", "array"}, {"items", reference("body")}, {"minItems", 1}, {"maxItems", 1}}}},
      {"stages"});
}

Json builder_schema(std::span<const BuilderKey> keys);

Json value_schema(const BuilderKey& key) {
  Json size = {{"type", "integer"}, {"minimum", 1}, {"maximum", INT32_MAX}};
  switch (key.holds) {
    case BuilderKey::Holds::size:
      return size;
    case BuilderKey::Holds::cost:
      return integer(0);
    case BuilderKey::Holds::flag:
      return flag();
    case BuilderKey::Holds::choice:
      return one_of({key.choices.begin(), key.choices.end()});
    case BuilderKey::Holds::size_or_steps:
      return {{"anyOf", Json::array({size, list_of(builder_schema(chain_step_keys()))})}};
    case BuilderKey::Holds::size_or_lengths:
      return {{"anyOf", Json::array({size, list_of(size)})}};
  }
  return {};
}

Json builder_schema(std::span<const BuilderKey> keys) {
  Json properties = Json::object();
  std::vector<std::string> required;
  for (const BuilderKey& key : keys) {
    const std::string name(key.name);
    properties[name] = value_schema(key);
    if (key.is_required) required.push_back(name);
  }
  return object(properties, required);
}

/// Statements, or a builder.
Json any_program_schema() {
  Json any = Json::array({program_schema()});
  for (const ProgramBuilderRow& row : program_builders())
    any.push_back(builder_schema(row.keys));
  return {{"anyOf", any}};
}

Json schedule_schema() {
  const Json name = {{"type", "string"},
                     {"pattern", "^(UPDATE|ZERO_GRAD|(F|B|DX|DW|I|W)0\\.[0-9]+)$"}};
  const Json action = {{"anyOf", Json::array({name, object({{"action", name},
                                                            {"retain", flag()},
                                                            {"group", integer(0)},
                                                            {"wrt", list_of(text())},
                                                            {"catch", flag()}},
                                                           {"action"})})}};
  return object(
      {{"microbatches", integer(1)},
       {"backward", one_of({"full", "split"})},
       {"update", flag()},
       {"actions", {{"anyOf", Json::array({list_of(action), list_of(list_of(action))})}}}},
      {});
}

/// On or off, or what is sent.
Json offload_schema() {
  const Json what = list_of(one_of(offloaded_things()));
  return {{"anyOf", Json::array({flag(), object({{"what", what}}, {"what"})})}};
}

/// Of all models, or of those that are named.
Json ratio_schema() {
  const Json fraction = {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
  return {{"anyOf", Json::array({fraction, map_of(fraction)})}};
}

Json links_schema() {
  const Json link = object({{"bytes_per_second", integer(1)}, {"latency_ns", integer(0)}}, {});
  Json levels = Json::object();
  for (const std::string& level : level_names())
    levels[level] = link;
  return object(levels, {});
}

}  // namespace

std::string scenario_schema() {
  const Json selection = {{"anyOf", Json::array({flag(), list_of(text())})}};
  const Json interval = {{"type", "array"}, {"items", text()}, {"minItems", 2}, {"maxItems", 2}};
  const Json units = map_of(object(
      {{"ops", list_of(text())}, {"callables", list_of(text())}, {"intervals", list_of(interval)}},
      {}));
  const Json protocol = object({{"name", one_of(protocol_names())},
                                {"early_stop", flag()},
                                {"compat", one_of({"strict", "torch", "public"})},
                                {"determinism_check", flag()},
                                {"preserve_rng", flag()},
                                {"allow_cache_entry_mutation", flag()},
                                {"ambient_hooks", flag()},
                                {"boundaries", one_of({"both", "forward", "none"})},
                                {"state_hooks", flag()},
                                {"dw_tasks", one_of({"one", "per_group"})},
                                {"keep", list_of(text())},
                                {"keep_collectives", flag()},
                                {"keep_every", integer(0)},
                                {"units", units},
                                {"select", selection},
                                {"sub_models", map_of(selection)},
                                {"keeps_any", flag()},
                                {"mode", one_of({"unified", "by_selection"})},
                                {"offload", offload_schema()},
                                {"recompute_ratio", ratio_schema()}},
                               {"name"});
  const Json machine = object({{"memory_bytes", integer(1)},
                               {"flops_per_second", integer(1)},
                               {"bytes_per_second", integer(1)},
                               {"links", links_schema()}},
                              {});
  Json schema = object({{"format", {{"const", "rematsim-scenario"}}},
                        {"version", {{"const", 1}}},
                        {"name", text()},
                        {"case", text()},
                        {"about", text()},
                        {"program", any_program_schema()},
                        {"protocol", protocol},
                        {"schedule", schedule_schema()},
                        {"machine", machine},
                        {"ranks", {{"type", "integer"}, {"minimum", 1}, {"maximum", 256}}},
                        {"groups", map_of(list_of(integer(0)))},
                        {"steps", {{"type", "integer"}, {"minimum", 1}, {"maximum", 1000000}}},
                        {"seed", integer(0)}},
                       {"format", "version", "program"});
  Json all = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "rematsim scenario"},
              {"$defs",
               {{"kind", one_of(kind_names(false))},
                {"dtype", one_of(known_dtypes())},
                {"argument",
                 {{"anyOf", Json::array({text(), list_of(reference("argument")),
                                         map_of(reference("argument"))})}}},
                {"body", list_of({{"oneOf", statement_schemas()}})}}}};
  all.update(schema);
  return all.dump(2);
}

}  // namespace remat
