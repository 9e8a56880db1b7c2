#include "properties/negative_edit.hpp"

#include <array>

namespace remat {
namespace {

// Protocols, as bits.
constexpr std::uint16_t plain = 1;
constexpr std::uint16_t torch = 2;
constexpr std::uint16_t reentrant = 4;
constexpr std::uint16_t selective = 8;
constexpr std::uint16_t excluding = 16;   // P3
constexpr std::uint16_t rederiving = 32;  // P4 to P6
constexpr std::uint16_t wrappers = excluding | rederiving;
constexpr std::uint16_t saving = 64;  // P7
constexpr std::uint16_t leaving_out = wrappers | saving;
constexpr std::uint16_t unit_ops = 128;  // P8, P9: save units of ops and callables
constexpr std::uint16_t unit_markers = 256;
constexpr std::uint16_t units = unit_ops | unit_markers;
constexpr std::uint16_t all = units | plain | torch | reentrant | selective | leaving_out;

constexpr std::array rows = {
    EditRow{Edit::none, "none", "", 0, all},
    // Exceptions are what user code has most of.
    EditRow{Edit::raise_in_forward, "raise in forward", "E-USER", 5, all},
    EditRow{Edit::raise_in_replay, "raise in replay", "E-USER", 5,
            torch | reentrant | selective | leaving_out | units},
    EditRow{Edit::backward_twice, "backward twice", "E-TWICE", 1, all},
    EditRow{Edit::argument_written,
            "argument written",
            "E-MUTATED",
            1,
            torch | selective | leaving_out | units,
            {"version_unchanged"}},
    EditRow{Edit::parameter_written,
            "parameter written",
            "E-MUTATED",
            1,
            torch | selective | leaving_out | units,
            {"version_unchanged"}},
    EditRow{Edit::hidden_argument_written,
            "hidden argument written",
            "E-MUTATED",
            1,
            torch | selective | leaving_out | units,
            {"version_unchanged"}},
    EditRow{Edit::fewer_saves,
            "fewer saves",
            "E-COUNT",
            1,
            torch | saving,
            {"saved_lists_match", "boundaries_match", "gradients_equal_plain"}},
    EditRow{Edit::fewer_saves_unchecked,
            "fewer saves unchecked",
            "E-SLOT-EMPTY",
            1,
            torch,
            {"saved_lists_match", "unpack_follows_replay"}},
    EditRow{Edit::more_saves,
            "more saves",
            "E-MORE",
            1,
            torch,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::other_path,
            "other path",
            "E-META",
            1,
            torch,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::other_layout, "other layout", "E-META", 1, torch, {"saved_lists_match"}},
    EditRow{
        Edit::stale_slot, "stale slot", "E-SLOT-STALE", 1, torch | saving, {"version_unchanged"}},
    EditRow{Edit::kept_output_written,
            "kept output written",
            "E-MUTATED",
            1,
            selective,
            {"version_unchanged"}},
    EditRow{Edit::selective_twice, "selective twice", "E-TWICE", 1, selective, {"slot_used_once"}},
    EditRow{Edit::op_without_entry,
            "op without entry",
            "E-CACHE-MISS",
            1,
            selective,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::group_twice, "group twice", "E-TWICE", 1, torch | selective, {"slot_used_once"}},
    EditRow{Edit::captured_by_reentrant, "captured by reentrant", "E-GRAD-NONE", 2, reentrant},
    EditRow{Edit::partial_through_reentrant, "partial through reentrant", "E-USER", 1, reentrant},
    EditRow{
        Edit::excluded_twice, "excluded twice", "E-CACHE-MISS", 2, wrappers, {"slot_used_once"}},
    EditRow{Edit::excluded_in_excluded, "excluded in excluded", "E-SESSION", 1, wrappers},
    EditRow{Edit::unkept_output_read,
            "unkept output read",
            "E-PLACEHOLDER",
            2,
            rederiving | saving,
            {"boundaries_match"}},
    EditRow{Edit::rederived_input_written,
            "rederived input written",
            "E-SLOT-STALE",
            1,
            rederiving | saving,
            {"version_unchanged"}},
    EditRow{Edit::served_output_written,
            "served output written",
            "E-MUTATED",
            1,
            wrappers | saving,
            {"version_unchanged"}},
    EditRow{Edit::excluded_input_missing,
            "excluded input missing",
            "E-PATH",
            2,
            rederiving | saving,
            {"boundaries_match", "saved_lists_match"}},
    EditRow{Edit::excluded_input_reshaped,
            "excluded input reshaped",
            "E-LAYOUT",
            2,
            rederiving | saving,
            {"saved_lists_match"}},
    EditRow{Edit::fewer_excluded_calls,
            "fewer excluded calls",
            "E-CACHE-LEFT",
            2,
            wrappers,
            {"saved_lists_match", "boundaries_match", "gradients_equal_plain"}},
    EditRow{Edit::output_escapes,
            "output escapes",
            "E-SLOT-EMPTY",
            1,
            rederiving,
            {"unpack_follows_replay"}},
    EditRow{Edit::same_name_twice, "same name twice", "E-STRUCTURE", 1, saving},
    EditRow{Edit::recomputed_in_saved, "recomputed in saved", "E-STRUCTURE", 1, saving},
    EditRow{Edit::checkpoint_in_checkpoint, "checkpoint in checkpoint", "E-STRUCTURE", 1, saving},
    EditRow{Edit::no_record, "no record", "E-CACHE-MISS", 1, saving},
    EditRow{Edit::written_between_markers, "written between markers", "E-STRUCTURE", 1,
            unit_markers},
};

std::uint16_t bit_of(const std::string& protocol) {
  if (protocol == "torch") return torch;
  if (protocol == "torch-reentrant") return reentrant;
  if (protocol == "torch-sac") return selective;
  if (protocol == "exclude") return excluding;
  if (protocol == "exclude-rederive") return rederiving;
  if (protocol == "remat") return saving;
  if (protocol == "kept-ops" || protocol == "kept-callables") return unit_ops;
  if (protocol == "markers") return unit_markers;
  return plain;
}

}  // namespace

std::span<const EditRow> edits() {
  return rows;
}

Edit choose_edit(ChoiceTape& tape, const std::string& protocol) {
  const std::uint16_t bit = bit_of(protocol);
  const auto suits = [bit](const EditRow& row) { return (row.protocols & bit) != 0; };
  std::uint64_t weights = 0;
  for (const EditRow& row : rows)
    weights += suits(row) ? row.weight : 0;
  // Seven of ten shares are no edit's.
  const std::uint64_t share = tape.choose(weights * 10);
  if (share < weights * 7) return Edit::none;
  std::uint64_t left = (share - weights * 7) / 3;
  for (const EditRow& row : rows) {
    if (!suits(row)) continue;
    if (left < row.weight) return row.edit;
    left -= row.weight;
  }
  return Edit::none;
}

}  // namespace remat
