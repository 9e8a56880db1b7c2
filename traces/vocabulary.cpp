#include "traces/vocabulary.hpp"

#include <iterator>

namespace remat {
namespace {

using F = Field;
using T = FieldType;

constexpr FieldRow context[] = {
    {F::seq, T::count},          {F::ts_ns, T::integer}, {F::thread, T::integer},
    {F::rank, T::count},         {F::phase, T::name},    {F::microbatch, T::count},
    {F::kind, T::name},          {F::live, T::integer},  {F::gid, T::session},
    {F::graph_task, T::integer}, {F::node, T::node},     {F::unit, T::name},
    {F::inv, T::count},          {F::frame, T::count},   {F::wrapper, T::name},
    {F::call, T::count},         {F::stage, T::count},   {F::why, T::text}};

constexpr FieldRow tensor_object[] = {
    {F::t, T::count},         {F::s, T::count},     {F::dtype, T::name},  {F::shape, T::integers},
    {F::stride, T::integers}, {F::off, T::count},   {F::bytes, T::count}, {F::v, T::count},
    {F::name, T::name},       {F::device, T::name}, {F::value, T::json}};

constexpr FieldRow header_fields[] = {{F::format, T::name},
                                      {F::version, T::count},
                                      {F::case_, T::text},
                                      {F::source, T::text},
                                      {F::config, T::json},
                                      {F::expect, T::json},
                                      {F::plain_save_observation, T::name},
                                      {F::not_recorded, T::json},
                                      {F::producer, T::name},
                                      {F::framework, T::text},
                                      {F::torch, T::text},
                                      {F::python, T::text},
                                      {F::ranks, T::count}};
constexpr FieldRow step_fields[] = {{F::step, T::count}, {F::cause, T::name}};
constexpr FieldRow phase_fields[] = {{F::retain, T::boolean},
                                     {F::captures, T::json},
                                     {F::root, T::count},
                                     {F::prefire, T::integers}};
constexpr FieldRow unit_fields[] = {{F::exec, T::name},         {F::checkpointed, T::boolean},
                                    {F::reentrant, T::boolean}, {F::nested_in, T::json},
                                    {F::in_replay, T::boolean}, {F::ended_by, T::name},
                                    {F::ops, T::count},         {F::packs, T::count},
                                    {F::rng_crc, T::integer},   {F::early_stop_enabled, T::boolean},
                                    {F::owner, T::name}};
constexpr FieldRow body_begin_fields[] = {{F::exec, T::name}, {F::rng_crc, T::integer}};
constexpr FieldRow frame_fields[] = {{F::early_stop, T::boolean}, {F::impl, T::name}};
constexpr FieldRow inputs_fields[] = {
    {F::tensors, T::ids_or_tensors}, {F::n_nontensor, T::count}, {F::cause, T::name}};
constexpr FieldRow op_fields[] = {{F::name, T::name},       {F::attrs, T::json},
                                  {F::inputs, T::integers}, {F::reads, T::tensors},
                                  {F::outputs, T::tensors}, {F::dur_ns, T::count},
                                  {F::internal, T::name},   {F::compiled, T::boolean}};
constexpr FieldRow op_error_fields[] = {
    {F::name, T::name}, {F::inputs, T::integers}, {F::type, T::name}, {F::first_line, T::text}};
constexpr FieldRow tensor_event_fields[] = {
    {F::t, T::count},        {F::s, T::count},         {F::dtype, T::name},
    {F::shape, T::integers}, {F::stride, T::integers}, {F::off, T::count},
    {F::bytes, T::count},    {F::v, T::count},         {F::name, T::name},
    {F::device, T::name},    {F::value, T::json},      {F::requires_grad, T::boolean}};
constexpr FieldRow storage_fields[] = {{F::storage, T::count},
                                       {F::bytes, T::count},
                                       {F::role, T::name},
                                       {F::op, T::name},
                                       {F::name, T::name}};
constexpr FieldRow role_fields[] = {{F::storage, T::count}, {F::role, T::name}, {F::name, T::name}};
constexpr FieldRow mutate_fields[] = {{F::tensor, T::count},
                                      {F::storage, T::count},
                                      {F::op_seq, T::count},
                                      {F::version_at_dispatch, T::count},
                                      {F::name, T::name}};
constexpr FieldRow pack_fields[] = {{F::slot, T::name},
                                    {F::idx, T::count},
                                    {F::role, T::name},
                                    {F::held, T::name},
                                    {F::tensor, T::tensor},
                                    {F::region, T::name},
                                    {F::path, T::json},
                                    {F::view, T::boolean},
                                    {F::unmanaged, T::boolean},
                                    {F::name, T::name},
                                    {F::handle, T::name},
                                    {F::exact, T::boolean},
                                    {F::relative_offset, T::integer},
                                    {F::boundary, T::boolean}};
constexpr FieldRow repack_fields[] = {{F::slot, T::name},      {F::idx, T::count},
                                      {F::of, T::count},       {F::holder_alive, T::boolean},
                                      {F::tensor, T::tensor},  {F::boundary, T::boolean},
                                      {F::refused, T::boolean}};
constexpr FieldRow early_stop_fields[] = {
    {F::after_packs, T::count}, {F::of, T::count}, {F::after_ops, T::count}};
constexpr FieldRow determinism_fields[] = {{F::ok, T::boolean},
                                           {F::n_forward, T::count},
                                           {F::n_replay, T::count},
                                           {F::n_holders_alive, T::count},
                                           {F::error, T::text}};
constexpr FieldRow unpack_begin_fields[] = {{F::slot, T::name},
                                            {F::by, T::name},
                                            {F::triggers_replay, T::boolean},
                                            {F::retain, T::boolean}};
constexpr FieldRow unpack_fields[] = {
    {F::slot, T::name},  {F::tensor, T::tensor},           {F::from, T::name},
    {F::by, T::name},    {F::triggers_replay, T::boolean}, {F::retained, T::boolean},
    {F::handle, T::name}};
constexpr FieldRow error_fields[] = {{F::slot, T::name},        {F::code, T::name},
                                     {F::label, T::text},       {F::type, T::name},
                                     {F::first_line, T::text},  {F::first_lines, T::json},
                                     {F::cause_chain, T::json}, {F::raised_after_seq, T::count},
                                     {F::where, T::json},       {F::caught, T::boolean}};
// What a request or an experiment ends in, nobody catches.
constexpr auto uncaught_fields = std::span(error_fields).first(std::size(error_fields) - 1);
constexpr FieldRow warning_fields[] = {
    {F::code, T::name}, {F::owner, T::name}, {F::op, T::name}, {F::message, T::text}};
constexpr FieldRow holder_free_fields[] = {{F::slot, T::name}};
constexpr FieldRow sac_fields[] = {
    {F::op, T::name}, {F::saved, T::boolean}, {F::idx, T::count}, {F::tensors, T::ids_or_tensors}};
constexpr FieldRow region_fields[] = {
    {F::region, T::name}, {F::policy, T::name}, {F::phase_remat, T::name}, {F::body, T::name}};
constexpr FieldRow remat_fields[] = {{F::region, T::name},         {F::output, T::count},
                                     {F::stored, T::boolean},      {F::popped, T::boolean},
                                     {F::tensor, T::tensor},       {F::recipes, T::json},
                                     {F::declared_bytes, T::count}};
constexpr FieldRow remat_user_pack_fields[] = {{F::save_kind, T::name}, {F::shape, T::integers}};
constexpr FieldRow state_hook_fields[] = {{F::region, T::name}, {F::action, T::name}};
constexpr FieldRow node_begin_fields[] = {{F::retain_graph, T::boolean}};
constexpr FieldRow grad_fields[] = {{F::param, T::name}, {F::value, T::json}, {F::site, T::text}};
constexpr FieldRow side_effect_fields[] = {{F::name, T::name}};
constexpr FieldRow rng_fields[] = {
    {F::generator, T::name}, {F::tag, T::name}, {F::to, T::integer}, {F::n, T::count}};
constexpr FieldRow scope_fields[] = {{F::scope, T::name}};
constexpr FieldRow field_fields[] = {{F::field, T::name}, {F::key, T::json}, {F::by, T::name}};
constexpr FieldRow collective_fields[] = {
    {F::group, T::name}, {F::name, T::name}, {F::tag, T::name}, {F::n, T::count}};
constexpr FieldRow message_fields[] = {
    {F::peer, T::count}, {F::tag, T::name}, {F::bytes, T::count}};
constexpr FieldRow stream_fields[] = {{F::stream, T::name},
                                      {F::name, T::name},
                                      {F::reads, T::integers},
                                      {F::writes, T::integers},
                                      {F::event, T::name}};
constexpr FieldRow copy_fields[] = {
    {F::storage, T::count}, {F::direction, T::name}, {F::stream, T::name}};
constexpr FieldRow session_fields[] = {
    {F::retain, T::boolean}, {F::cause, T::name}, {F::frames, T::integers}};
constexpr FieldRow action_fields[] = {{F::action, T::name}};
constexpr FieldRow note_fields[] = {{F::msg, T::text}};
constexpr FieldRow wrapper_fields[] = {{F::exec, T::name},           {F::skipped, T::boolean},
                                       {F::save_output, T::boolean}, {F::inputs, T::tensors},
                                       {F::ended_by, T::name},       {F::boundaries, T::count},
                                       {F::outputs, T::integers},    {F::rng_crc, T::integer}};
constexpr FieldRow slot_fill_fields[] = {{F::slot, T::name},        {F::path, T::json},
                                         {F::tensor, T::tensor},    {F::handle, T::name},
                                         {F::entry_call, T::count}, {F::refused, T::boolean}};
constexpr FieldRow cache_fields[] = {{F::leaves, T::count},
                                     {F::kept, T::boolean},
                                     {F::bindings, T::count},
                                     {F::used, T::count},
                                     {F::tensors, T::ids_or_tensors},
                                     {F::storages, T::integers},
                                     {F::ok, T::boolean},
                                     {F::error, T::text},
                                     {F::entry_call, T::count},
                                     {F::left, T::json},
                                     {F::entries, T::count}};
constexpr FieldRow boundary_fields[] = {
    {F::leaf, T::count}, {F::exec, T::name}, {F::input, T::count}, {F::requires_grad, T::boolean}};
constexpr FieldRow placeholder_fields[] = {
    {F::leaf, T::count}, {F::leaves, T::count}, {F::structure, T::text}, {F::tensor, T::tensor}};
constexpr FieldRow own_fields[] = {
    {F::storage, T::count}, {F::class_, T::name}, {F::owner, T::name}};
constexpr FieldRow update_fields[] = {{F::param, T::name}, {F::version, T::count}};
constexpr FieldRow mark_fields[] = {
    {F::owners, T::json}, {F::diagnosis, T::name}, {F::owner, T::name}, {F::name, T::name}};

constexpr KindRow rows[] = {
    {Kind::header, "header", "the first line: format, version, configuration and what is expected",
     header_fields},
    {Kind::step_begin, "step_begin", "one training step begins", step_fields},
    {Kind::step_end, "step_end", "the step ends: counts, gradients, scopes and leaks are due",
     step_fields},
    {Kind::phase_begin, "phase_begin", "a phase of a micro-batch begins; retain: the graph is kept",
     phase_fields},
    {Kind::phase_end, "phase_end", "the phase ends", phase_fields},
    {Kind::unit_begin, "unit_begin", "a checkpointed region begins, in forward or as a replay",
     unit_fields},
    {Kind::unit_end, "unit_end", "the region ends, by return, early stop or an error", unit_fields},
    {Kind::body_begin, "body_begin", "the region's inputs are ready and the random state is set",
     body_begin_fields},
    {Kind::frame_create, "frame_create", "the record of one call of a region is made",
     frame_fields},
    {Kind::frame_free, "frame_free", "the record of one call is gone", frame_fields},
    {Kind::inputs_save, "inputs_save", "the region's own inputs are kept", inputs_fields},
    {Kind::inputs_unpack_begin, "inputs_unpack_begin", "a replay asks for the region's inputs",
     inputs_fields},
    {Kind::inputs_unpack, "inputs_unpack", "the region's inputs are handed to the replay",
     inputs_fields},
    {Kind::op, "op", "an op ran", op_fields},
    {Kind::op_error, "op_error", "an op raised", op_error_fields},
    {Kind::tensor, "tensor", "a tensor is seen for the first time", tensor_event_fields},
    {Kind::storage_alloc, "storage_alloc", "a storage begins to live", storage_fields},
    {Kind::storage_free, "storage_free", "a storage is released", storage_fields},
    {Kind::role, "role", "who owns a storage", role_fields},
    {Kind::mutate, "mutate", "a write in place: the storage's version goes up by one",
     mutate_fields},
    {Kind::pack, "pack", "a tensor is saved for backward in a slot", pack_fields},
    {Kind::repack, "repack", "a replay or a reload fills a slot", repack_fields},
    {Kind::early_stop, "early_stop", "a replay is cut short", early_stop_fields},
    {Kind::determinism_check, "determinism_check", "what the real system compared",
     determinism_fields},
    {Kind::unpack_begin, "unpack_begin", "backward asks for a slot", unpack_begin_fields},
    {Kind::unpack, "unpack", "backward gets what the slot holds", unpack_fields},
    {Kind::unpack_error, "unpack_error", "the request for a slot was refused", uncaught_fields},
    {Kind::error, "error", "something was raised", error_fields},
    {Kind::no_error, "no_error", "it ran without raising", uncaught_fields},
    {Kind::warning, "warning", "a diagnostic", warning_fields},
    {Kind::holder_free, "holder_free", "the slot's owner is gone", holder_free_fields},
    {Kind::sac_decide, "sac_decide",
     "selective checkpointing decides in forward to keep an op's output", sac_fields},
    {Kind::sac_hit, "sac_hit", "a replay is served an op's kept output instead of running it",
     sac_fields},
    {Kind::region_begin, "region_begin", "a torch_remat region begins", region_fields},
    {Kind::region_end, "region_end", "a torch_remat region ends", region_fields},
    {Kind::remat_persist, "remat_persist", "a region's output is kept for the replay",
     remat_fields},
    {Kind::remat_serve, "remat_serve", "a kept output is handed to the replay", remat_fields},
    {Kind::remat_placeholder, "remat_placeholder", "a tensor without data stands for an output",
     remat_fields},
    {Kind::remat_rederive, "remat_rederive", "a region's saved inputs are rebuilt in the replay",
     remat_fields},
    {Kind::remat_user_pack, "remat_user_pack", "a region's save goes through the user's hooks",
     remat_user_pack_fields},
    {Kind::state_hook, "state_hook", "a state outside tensors is put away or restored",
     state_hook_fields},
    {Kind::node_begin, "node_begin", "a backward node starts", node_begin_fields},
    {Kind::grad, "grad", "a gradient contribution reaches a parameter", grad_fields},
    {Kind::side_effect, "side_effect", "an effect outside tensors: a counter, a log, a cache",
     side_effect_fields},
    {Kind::rng, "rng", "a draw from a generator", rng_fields},
    {Kind::rng_set, "rng_set", "a generator is put to a position", rng_fields},
    {Kind::scope_enter, "scope_enter", "a paired hook or context is entered", scope_fields},
    {Kind::scope_exit, "scope_exit", "a paired hook or context is left", scope_fields},
    {Kind::field_put, "field_put", "a place outside the slots that holds one entry is filled",
     field_fields},
    {Kind::field_get, "field_get", "that entry is taken", field_fields},
    {Kind::collective, "collective", "a rank issues a collective", collective_fields},
    {Kind::send, "send", "a rank sends to another", message_fields},
    {Kind::recv, "recv", "a rank receives from another", message_fields},
    {Kind::launch, "launch", "work is put on a stream", stream_fields},
    {Kind::record, "record", "an event is recorded on a stream", stream_fields},
    {Kind::wait, "wait", "a stream waits for an event", stream_fields},
    {Kind::copy_begin, "copy_begin", "a copy to or from the host begins", copy_fields},
    {Kind::copy_end, "copy_end", "that copy is done", copy_fields},
    {Kind::session_open, "session_open", "a session of replayed values opens", session_fields},
    {Kind::session_close, "session_close", "the session's scope closes", session_fields},
    {Kind::session_clear, "session_clear", "what the session keeps is forgotten", session_fields},
    {Kind::action_begin, "action_begin", "one entry of a pipeline schedule begins", action_fields},
    {Kind::action_end, "action_end", "that entry ends", action_fields},
    {Kind::note, "note", "a remark for people", note_fields},
    {Kind::wrapper_enter, "wrapper_enter", "an excluded region is entered", wrapper_fields},
    {Kind::wrapper_exit, "wrapper_exit", "an excluded region is left", wrapper_fields},
    {Kind::slot_fill, "slot_fill", "a replay fills an excluded region's input slot",
     slot_fill_fields},
    {Kind::cache_put, "cache_put", "an excluded region's call leaves an entry for the replay",
     cache_fields},
    {Kind::cache_pop, "cache_pop", "a replay takes that entry", cache_fields},
    {Kind::cache_clear, "cache_clear", "a frame's entries are dropped", cache_fields},
    {Kind::boundary, "boundary", "an output leaf passes a recompute boundary", boundary_fields},
    {Kind::placeholder, "placeholder", "a tensor without data stands for an output",
     placeholder_fields},
    {Kind::placeholder_read, "placeholder_read", "such a tensor is read as data",
     placeholder_fields},
    {Kind::own, "own", "an owner takes a storage", own_fields},
    {Kind::disown, "disown", "an owner leaves a storage", own_fields},
    {Kind::update, "update", "the optimizer updates a parameter", update_fields},
    {Kind::mark, "mark", "a marker of a save unit is passed", mark_fields},
    {Kind::zero_grad, "zero_grad", "every gradient is let go of, as if none had come", {}},
};
static_assert(std::size(rows) == kind_count - 1, "one row a kind");

}  // namespace

std::span<const KindRow> kind_rows() {
  return rows;
}
std::span<const FieldRow> context_fields() {
  return context;
}
std::span<const FieldRow> tensor_fields() {
  return tensor_object;
}

}  // namespace remat
