#include "tests/conformance/forward_part.hpp"

#include <fstream>

#include "traces/reader.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

bool is_border(Kind kind) {
  return kind == Kind::phase_begin || kind == Kind::phase_end || kind == Kind::step_begin ||
         kind == Kind::step_end || kind == Kind::header;
}

bool is_of_sessions(Kind kind) {
  return kind == Kind::session_open || kind == Kind::session_close || kind == Kind::session_clear;
}

bool knows_sessions(const Trace& recording) {
  for (std::size_t i = 0; i < recording.size(); ++i)
    if (recording[i].text(Field::impl) == "hyper_parallel") return true;
  return false;
}

bool is_note_or_error(Kind kind) {
  return kind == Kind::error || kind == Kind::no_error || kind == Kind::note;
}

}  // namespace

Trace forward_part(const Trace& recording, const std::string& path) {
  const bool has_sessions = knows_sessions(recording);
  std::ofstream cut(path);
  bool later = false;
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const EventView event = recording[i];
    const Kind kind = event.kind();
    later |= kind == Kind::phase_begin && event.phase() != Phase::setup &&
             event.phase() != Phase::forward;
    const bool is_forward =
        event.phase() == Phase::forward || (event.phase() == Phase::setup && !later);
    const bool is_callers =
        has_sessions &&
        (is_of_sessions(kind) || (kind == Kind::mutate && event.phase() == Phase::optimizer));
    if (is_note_or_error(kind) || !(is_border(kind) || is_forward || is_callers)) continue;
    std::string line;
    append_json(event, line);
    cut << line;
  }
  cut.close();
  return read_trace(path);
}

}  // namespace remat
