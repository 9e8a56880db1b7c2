#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "properties/choice_tape.hpp"

namespace remat {

/// A change that makes a legal program one that must end in a known error (protocols.md §6).
enum class Edit : std::uint8_t {
  none,
  raise_in_forward,
  raise_in_replay,
  backward_twice,
  argument_written,
  parameter_written,
  hidden_argument_written,
  fewer_saves,
  fewer_saves_unchecked,
  more_saves,
  other_path,
  other_layout,
  stale_slot,
  kept_output_written,
  selective_twice,
  op_without_entry,
  group_twice,
  captured_by_reentrant,
  partial_through_reentrant,
  excluded_twice,
  excluded_in_excluded,
  unkept_output_read,
  rederived_input_written,
  served_output_written,
  excluded_input_missing,
  excluded_input_reshaped,
  fewer_excluded_calls,
  output_escapes,
  same_name_twice,
  recomputed_in_saved,
  checkpoint_in_checkpoint,
  no_record,
  written_between_markers
};

struct EditRow {
  Edit edit;
  std::string_view name;
  std::string_view code;    // of protocols.md §1.2; empty: no error
  std::uint8_t weight;      // how often it is drawn, against the others of the protocol
  std::uint16_t protocols;  // under which it may stand, as bits
  // What invariants may say of the request that ends in the error; anything else is an alarm.
  std::array<std::string_view, 3> excuses = {};

  bool excuses_finding(std::string_view invariant) const {
    return std::find(excuses.begin(), excuses.end(), invariant) != excuses.end();
  }
};
/// All of them, in the order of the enumeration.
std::span<const EditRow> edits();
inline const EditRow& row_of(Edit edit) {
  return edits()[static_cast<std::size_t>(edit)];
}

/// In three of ten cases, one that the protocol can have.
Edit choose_edit(ChoiceTape& tape, const std::string& protocol);

}  // namespace remat
