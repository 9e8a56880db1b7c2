#include "properties/negative_edit.hpp"

#include <array>

namespace remat {
namespace {

constexpr std::array rows = {
    EditRow{Edit::none, "none", "", 0, true, true, true, true},
    // Exceptions are what user code has most of.
    EditRow{Edit::raise_in_forward, "raise in forward", "E-USER", 5, true, true, true, true},
    EditRow{Edit::raise_in_replay, "raise in replay", "E-USER", 5, false, true, true, true},
    EditRow{Edit::backward_twice, "backward twice", "E-TWICE", 1, true, true, true, true},
    EditRow{Edit::argument_written,
            "argument written",
            "E-MUTATED",
            1,
            false,
            true,
            false,
            true,
            {"version_unchanged"}},
    EditRow{Edit::parameter_written,
            "parameter written",
            "E-MUTATED",
            1,
            false,
            true,
            false,
            true,
            {"version_unchanged"}},
    EditRow{Edit::hidden_argument_written,
            "hidden argument written",
            "E-MUTATED",
            1,
            false,
            true,
            false,
            true,
            {"version_unchanged"}},
    EditRow{Edit::fewer_saves,
            "fewer saves",
            "E-COUNT",
            1,
            false,
            true,
            false,
            false,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::fewer_saves_unchecked,
            "fewer saves unchecked",
            "E-SLOT-EMPTY",
            1,
            false,
            true,
            false,
            false,
            {"saved_lists_match", "unpack_follows_replay"}},
    EditRow{Edit::more_saves,
            "more saves",
            "E-MORE",
            1,
            false,
            true,
            false,
            false,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::other_path,
            "other path",
            "E-META",
            1,
            false,
            true,
            false,
            false,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::other_layout,
            "other layout",
            "E-META",
            1,
            false,
            true,
            false,
            false,
            {"saved_lists_match"}},
    EditRow{Edit::stale_slot,
            "stale slot",
            "E-SLOT-STALE",
            1,
            false,
            true,
            false,
            false,
            {"version_unchanged"}},
    EditRow{Edit::kept_output_written,
            "kept output written",
            "E-MUTATED",
            1,
            false,
            false,
            false,
            true,
            {"version_unchanged"}},
    EditRow{Edit::selective_twice,
            "selective twice",
            "E-TWICE",
            1,
            false,
            false,
            false,
            true,
            {"slot_used_once"}},
    EditRow{Edit::op_without_entry,
            "op without entry",
            "E-CACHE-MISS",
            1,
            false,
            false,
            false,
            true,
            {"saved_lists_match", "gradients_equal_plain"}},
    EditRow{Edit::group_twice,
            "group twice",
            "E-TWICE",
            1,
            false,
            true,
            false,
            true,
            {"slot_used_once"}},
    EditRow{Edit::captured_by_reentrant, "captured by reentrant", "E-GRAD-NONE", 2, false, false,
            true, false},
    EditRow{Edit::partial_through_reentrant, "partial through reentrant", "E-USER", 1, false, false,
            true, false},
};

bool suits(const EditRow& row, const std::string& protocol) {
  if (protocol == "torch") return row.for_torch;
  if (protocol == "torch-reentrant") return row.for_reentrant;
  if (protocol == "torch-sac") return row.for_selective;
  return row.for_plain;
}

}  // namespace

std::span<const EditRow> edits() {
  return rows;
}

Edit choose_edit(ChoiceTape& tape, const std::string& protocol) {
  std::uint64_t weights = 0;
  for (const EditRow& row : rows)
    weights += suits(row, protocol) ? row.weight : 0;
  // Seven of ten shares are no edit's.
  const std::uint64_t share = tape.choose(weights * 10);
  if (share < weights * 7) return Edit::none;
  std::uint64_t left = (share - weights * 7) / 3;
  for (const EditRow& row : rows) {
    if (!suits(row, protocol)) continue;
    if (left < row.weight) return row.edit;
    left -= row.weight;
  }
  return Edit::none;
}

}  // namespace remat
