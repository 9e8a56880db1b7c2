#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "properties/invariants/facts.hpp"

namespace remat {

// How messages name things: the same words in every finding.

/// `slot f1.3 of layer1#0 (micro-batch 0)`; `slot x3 of wrapper mlp#1, input arg0, of …` for one
/// that an excluded region's body packed.
std::string shown(const Slot& slot, const Trace& trace);
/// `wrapper mlp#1`: call 1 of an excluded region.
std::string shown_wrapper(NameId wrapper, std::optional<std::int64_t> call, const Trace& trace);
/// `wrapper mlp#1, input arg0,`: likewise, and one of its inputs by its path, as JSON; no more than
/// `shown_wrapper` where that is empty.
std::string shown_input(NameId wrapper, std::optional<std::int64_t> call, std::string_view path,
                        const Trace& trace);
/// The call of an excluded region that the event names: `wrapper mlp#1 of layer1#0 (micro-batch
/// 0)`.
std::string shown_excluded_call(const EventView& event, const Facts& facts);
/// `1st`, `2nd`, `13th`.
std::string ordinal(std::int64_t n);
/// `graph task 39`, `session g1`, `a single read (7)`; "no session" where the trace tells none.
std::string shown(std::optional<SessionKey> session, const Trace& trace);
/// `storage 12` with its name, where it has one.
std::string shown(StorageId storage, const Facts& facts, const Trace& trace);
/// `f32 [4,8] stride [8,1] offset 0`, what was recorded of it.
std::string shown(const Layout& layout, const Trace& trace);
/// `layer1#0 (micro-batch 0)`.
std::string shown(const Frame& frame, const Trace& trace);
/// The call that a frame key stands for; `frame 3` where nothing else is known.
std::string shown_call(std::int64_t frame, const Facts& facts, const Trace& trace);
/// `in the replay of layer1#0 for graph task 39`, `in forward of layer1#0 (micro-batch 2)` or `in
/// backward on rank 1`: where the event stands.
std::string where(const EventView& event, const Facts& facts);
/// ` by graph task 39`; empty where the trace tells no session, and where `where` names it.
std::string by_session(std::optional<SessionKey> session, const Facts& facts, const Trace& trace);
/// `1 write`, `3 writes`.
std::string counted(std::int64_t n, const std::string& noun);

}  // namespace remat
