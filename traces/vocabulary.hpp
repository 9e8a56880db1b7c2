#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace remat {

/// What happened: the kinds of event of `ckpt-trace` version 1 (docs/trace-format.md).
enum class Kind : std::uint8_t {
  unknown,  // a kind that this version does not know: counted and kept
  header,
  step_begin,
  step_end,
  phase_begin,
  phase_end,
  unit_begin,
  unit_end,
  body_begin,
  frame_create,
  frame_free,
  inputs_save,
  inputs_unpack_begin,
  inputs_unpack,
  op,
  op_error,
  tensor,
  storage_alloc,
  storage_free,
  role,
  mutate,
  pack,
  repack,
  early_stop,
  determinism_check,
  unpack_begin,
  unpack,
  unpack_error,
  error,
  no_error,
  warning,
  holder_free,
  sac_decide,
  sac_hit,
  region_begin,
  region_end,
  remat_persist,
  remat_serve,
  remat_placeholder,
  remat_rederive,
  remat_user_pack,
  state_hook,
  node_begin,
  grad,
  side_effect,
  rng,
  rng_set,
  scope_enter,
  scope_exit,
  field_put,
  field_get,
  collective,
  send,
  recv,
  launch,
  record,
  wait,
  copy_begin,
  copy_end,
  session_open,
  session_close,
  session_clear,
  action_begin,
  action_end,
  note,
  wrapper_enter,
  wrapper_exit,
  slot_fill,
  cache_put,
  cache_pop,
  cache_clear,
  boundary,
  placeholder,
  placeholder_read,
  own,
  disown,
  update,
  mark,
  zero_grad
};
inline constexpr std::size_t kind_count = static_cast<std::size_t>(Kind::zero_grad) + 1;

/// The fields of events and of tensors. The name on disk is the enumerator's, without a trailing
/// underscore.
enum class Field : std::uint8_t {
  seq,
  ts_ns,
  thread,
  rank,
  phase,
  microbatch,
  kind,
  live,
  gid,
  graph_task,
  node,
  unit,
  inv,
  frame,
  wrapper,
  call,
  stage,
  why,
  format,
  version,
  case_,
  source,
  config,
  expect,
  plain_save_observation,
  not_recorded,
  producer,
  framework,
  torch,
  python,
  step,
  cause,
  retain,
  captures,
  root,
  prefire,
  exec,
  checkpointed,
  reentrant,
  nested_in,
  in_replay,
  ended_by,
  ops,
  packs,
  rng_crc,
  early_stop_enabled,
  early_stop,
  impl,
  tensors,
  n_nontensor,
  name,
  attrs,
  inputs,
  reads,
  outputs,
  dur_ns,
  internal,
  type,
  first_line,
  requires_grad,
  storage,
  bytes,
  role,
  op,
  tensor,
  op_seq,
  version_at_dispatch,
  slot,
  idx,
  held,
  region,
  path,
  view,
  unmanaged,
  handle,
  exact,
  relative_offset,
  boundary,
  of,
  holder_alive,
  after_packs,
  after_ops,
  ok,
  n_forward,
  n_replay,
  n_holders_alive,
  error,
  from,
  by,
  triggers_replay,
  retained,
  code,
  label,
  first_lines,
  cause_chain,
  raised_after_seq,
  where,
  message,
  saved,
  policy,
  phase_remat,
  body,
  output,
  stored,
  popped,
  recipes,
  declared_bytes,
  save_kind,
  shape,
  retain_graph,
  param,
  value,
  site,
  generator,
  tag,
  to,
  scope,
  field,
  key,
  group,
  n,
  peer,
  stream,
  event,
  writes,
  direction,
  action,
  msg,
  save_output,
  skipped,
  boundaries,
  entry_call,
  refused,
  compiled,
  leaf,
  leaves,
  kept,
  bindings,
  used,
  storages,
  left,
  entries,
  input,
  structure,
  class_,
  owner,
  t,
  s,
  dtype,
  stride,
  off,
  v,
  device,
  frames,
  owners,
  diagnosis,
  caught,
  ranks  // of the header: how many take part
};
inline constexpr std::size_t field_count = static_cast<std::size_t>(Field::ranks) + 1;

enum class Phase : std::uint8_t {
  none,  // not recorded
  setup,
  forward,
  replay,
  backward,
  backward_input,
  backward_weight,
  optimizer,
  pretrigger
};
inline constexpr std::size_t phase_count = static_cast<std::size_t>(Phase::pretrigger) + 1;

/// How a field is written in JSON and kept in memory.
enum class FieldType : std::uint8_t {
  integer,  // a 64-bit signed integer
  count,    // an integer of at least 0
  boolean,
  name,            // a string out of a small set, interned
  text,            // any string, kept as it is
  integers,        // a list of integers
  tensor,          // one tensor object
  tensors,         // a list of tensor objects
  ids_or_tensors,  // a list of tensor ids, or one of tensor objects
  session,         // [kind, number or name]
  node,            // a name, or [name, unsigned 64-bit number]
  json             // any JSON value, kept as its text
};

struct FieldRow {
  Field field;
  FieldType type;
};

/// One kind of event: its own fields, beside those that every kind may carry (`context_fields`).
struct KindRow {
  Kind kind;
  std::string_view name;
  std::string_view meaning;
  std::span<const FieldRow> fields;
};

/// One row a kind, in the order of the enumerators, from `header` on.
std::span<const KindRow> kind_rows();
/// Fields that an event of any kind may carry.
std::span<const FieldRow> context_fields();
/// Fields of a tensor object.
std::span<const FieldRow> tensor_fields();

std::string_view name_of(Kind kind);
std::string_view name_of(Field field);
std::string_view name_of(Phase phase);
std::optional<Kind> kind_named(std::string_view name);
std::optional<Field> field_named(std::string_view name);
std::optional<Phase> phase_named(std::string_view name);

/// How `field` of a `kind` event is written; none where the format has no such field.
std::optional<FieldType> field_type(Kind kind, Field field);
/// What a value of that type looks like, for messages: "an integer", "a list of tensors", …
std::string_view expectation(FieldType type);

}  // namespace remat
