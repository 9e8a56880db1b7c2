#include "tests/properties/invariants/recording.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/traces/shared_traces.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& event, const char* field) {
  const auto found = event.find(field);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::int64_t> number_of(const Json& event, const char* field) {
  const auto found = event.find(field);
  if (found == event.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::string session_of(const Json& event) {
  if (const auto gid = event.find("gid"); gid != event.end() && !gid->is_null()) return gid->dump();
  const auto task = number_of(event, "graph_task");
  return task && *task >= 0 ? Json::array({"graph_task", *task}).dump() : std::string();
}

bool is_the_models_own(const Json& event) {
  const auto internal = event.find("internal");
  return internal == event.end() || internal->is_null();
}

/// Goes over a recording once and notes what is where.
class Survey {
 public:
  explicit Survey(Recording& recording) : of_(recording) {}

  void run() {
    for (std::size_t at = 0; at < of_.events.size(); ++at) {
      const Json& event = of_.events[at];
      note_scopes(event, at);
      note_slots(event, at);
      note_storages(event, at);
      note_kept(event, at);
    }
  }

 private:
  struct Open {
    std::string unit;
    std::optional<std::int64_t> frame;
    std::optional<std::size_t> replay;
    std::size_t begin = 0;
  };

  RecordedReplay* replay() {
    for (std::size_t i = open_.size(); i-- > 0;)
      if (open_[i].replay) return &of_.replays[*open_[i].replay];
    return nullptr;
  }

  void note_scopes(const Json& event, std::size_t at) {
    const std::string kind = text_of(event, "kind");
    if (kind == "step_begin") of_.step_begin = at;
    if (kind == "step_end") of_.step_end = at;
    if (kind == "early_stop" && replay() != nullptr) replay()->end = at;
    if (kind == "unit_begin") {
      Open open{text_of(event, "unit"), number_of(event, "frame"), std::nullopt, at};
      if (text_of(event, "exec") == "replay") {
        open.replay = of_.replays.size();
        of_.replays.push_back({at, 0, 0, open.frame, false, {}, {}});
      }
      open_.push_back(open);
    }
    if (kind == "unit_end") close(event, at);
    if (kind == "op" && is_the_models_own(event) && !open_.empty() && open_.back().replay)
      of_.replays[*open_.back().replay].ops.push_back(at);
  }

  void close(const Json& event, std::size_t at) {
    while (!open_.empty() && open_.back().unit != text_of(event, "unit"))
      open_.pop_back();
    if (open_.empty()) return;
    const Open open = open_.back();
    open_.pop_back();
    if (open.replay) {
      RecordedReplay& ended = of_.replays[*open.replay];
      ended.closed = at;
      if (ended.end == 0) ended.end = at;
      ended.returned = text_of(event, "ended_by") == "return";
      note_reread(ended);
    } else if (open.frame) {
      of_.forwards[*open.frame] = {open.begin, at};
    }
  }

  // What the replay reads first, and its forward read without having made it.
  void note_reread(const RecordedReplay& replay) {
    const auto forward = replay.frame ? of_.forwards.find(*replay.frame) : of_.forwards.end();
    if (forward == of_.forwards.end()) return;
    std::set<std::int64_t> seen;
    for (const std::size_t op : replay.ops) {
      for (const std::int64_t storage : reads_[op]) {
        if (seen.insert(storage).second && forward_read(forward->second, storage))
          of_.reread.push_back({storage, forward->second.second, op});
      }
    }
  }

  bool forward_read(std::pair<std::size_t, std::size_t> forward, std::int64_t storage) const {
    const auto born = births_.find(storage);
    if (born != births_.end() && born->second >= forward.first) return false;
    for (auto op = reads_.lower_bound(forward.first);
         op != reads_.end() && op->first < forward.second; ++op)
      if (op->second.count(storage) > 0 && is_the_models_own(of_.events[op->first])) return true;
    return false;
  }

  void note_slots(const Json& event, std::size_t at) {
    const std::string kind = text_of(event, "kind");
    if (kind == "frame_create") slots_of_the_caller_.clear();
    if ((kind == "pack" || kind == "repack") && event["tensor"].is_object() &&
        text_of(event, "role") != "unit_input")
      slots_of_the_caller_.insert(event["tensor"]["s"].get<std::int64_t>());
    if (kind == "pack") {
      const std::string slot = text_of(event, "slot");
      packs_[slot] = at;
      if (const auto frame = number_of(event, "frame"), idx = number_of(event, "idx"); frame && idx)
        by_index_[{*frame, *idx}] = slot;
    }
    if (kind == "repack" && replay() != nullptr) {
      replay()->fills.push_back(at);
      const auto slot = by_index_.find(
          {number_of(event, "frame").value_or(-1), number_of(event, "idx").value_or(-1)});
      if (slot == by_index_.end()) return;
      const auto number = static_cast<std::size_t>(replay() - of_.replays.data());
      fills_[{slot->second, session_of(event)}] = {at, number};
    }
    if (kind == "unpack_begin") asked_[text_of(event, "slot")] = at;
    if (kind == "unpack") note_read(event, at);
    if (kind == "holder_free") of_.holder_deaths[text_of(event, "slot")] = at;
  }

  void note_read(const Json& event, std::size_t at) {
    const std::string slot = text_of(event, "slot");
    const auto pack = packs_.find(slot);
    if (pack == packs_.end()) return;
    const Json& packed = of_.events[pack->second];
    if (text_of(packed, "held") == "saved" && packed["tensor"].is_object())
      of_.kept_slots.push_back({packed["tensor"]["s"].get<std::int64_t>(), pack->second, at});
    const auto fill = fills_.find({slot, session_of(event)});
    if (fill == fills_.end()) return;
    const auto asked = asked_.find(slot);
    const bool has_begin = asked != asked_.end();
    of_.filled_reads.push_back(
        {slot, fill->second.first, at, has_begin ? asked->second : at, fill->second.second});
    if (has_begin) asked_.erase(asked);
  }

  void note_storages(const Json& event, std::size_t at) {
    const std::string kind = text_of(event, "kind");
    if (kind == "storage_alloc") births_[*number_of(event, "storage")] = at;
    if (kind == "storage_free") note_death(*number_of(event, "storage"), at);
    if (kind == "op") {
      for (const Json& input : event["inputs"])
        read(storage_of(input), at);
    }
    if ((kind == "unpack" || kind == "repack") && event["tensor"].is_object()) {
      read(storage_of(event["tensor"]), at);
      held_.insert(event["tensor"]["s"].get<std::int64_t>());
    }
    if (kind == "pack" && event["tensor"].is_object())
      held_.insert(event["tensor"]["s"].get<std::int64_t>());
    for (const char* list : {"outputs", "tensors"}) {
      if (const auto shown = event.find(list); shown != event.end()) {
        for (const Json& tensor : *shown)
          describe(tensor);
      }
    }
    if (const auto tensor = event.find("tensor"); tensor != event.end()) describe(*tensor);
    if (kind == "tensor") describe(event);
  }

  void describe(const Json& tensor) {
    if (tensor.is_object() && tensor.contains("t") && tensor.contains("s"))
      tensors_[tensor["t"].get<std::int64_t>()] = tensor["s"].get<std::int64_t>();
  }

  std::int64_t storage_of(const Json& tensor) const {
    if (tensor.is_object()) return tensor["s"].get<std::int64_t>();
    const auto found = tensors_.find(tensor.get<std::int64_t>());
    return found == tensors_.end() ? -1 : found->second;
  }

  void read(std::int64_t storage, std::size_t at) {
    reads_[at].insert(storage);
    read_at_[storage].push_back(at);
  }

  void note_death(std::int64_t storage, std::size_t at) {
    const auto birth = births_.find(storage);
    if (birth == births_.end()) return;
    Life life{storage, birth->second, at, {}, held_.count(storage) > 0};
    for (const std::size_t read : read_at_[storage])
      if (read > life.birth) life.reads.push_back(read);
    of_.lives.push_back(std::move(life));
  }

  void note_kept(const Json& event, std::size_t at) {
    const std::string kind = text_of(event, "kind");
    if (kind == "inputs_save") {
      std::vector<std::int64_t>& inputs = inputs_[*number_of(event, "frame")].second;
      inputs_[*number_of(event, "frame")].first = at;
      inputs.clear();
      for (const Json& tensor : event["tensors"]) {
        if (slots_of_the_caller_.count(storage_of(tensor)) == 0)  // U2: the slot's business
          inputs.push_back(storage_of(tensor));
      }
    }
    if (kind == "inputs_unpack_begin") {
      const auto& [saved, inputs] = inputs_[*number_of(event, "frame")];
      for (const std::int64_t storage : inputs)
        of_.region_inputs.push_back({storage, saved, at});
    }
    if (kind == "sac_decide" && event.value("saved", false)) {
      cache_[text_of(event, "op") + "/" + event["idx"].dump() + "/" + unit()] = {
          at, storage_of(event["tensors"][0])};
    }
    if (kind == "sac_hit")
      note_hit(text_of(event, "op") + "/" + event["idx"].dump() + "/" + unit(), at);
    if (kind == "remat_persist" && event["tensor"].is_object()) {
      cache_[text_of(event, "region") + "/" + event["output"].dump()] = {
          at, storage_of(event["tensor"])};
    }
    if (kind == "remat_serve")
      note_hit(text_of(event, "region") + "/" + event["output"].dump(), at);
  }

  std::string unit() const { return open_.empty() ? std::string() : open_.back().unit; }

  void note_hit(const std::string& key, std::size_t at) {
    if (const auto kept = cache_.find(key); kept != cache_.end())
      of_.cached_outputs.push_back({kept->second.second, kept->second.first, at});
  }

  Recording& of_;
  std::vector<Open> open_;
  std::map<std::string, std::size_t> packs_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> by_index_;
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, std::size_t>> fills_;
  std::map<std::string, std::size_t> asked_;
  std::map<std::int64_t, std::size_t> births_;
  std::map<std::int64_t, std::int64_t> tensors_;
  std::map<std::size_t, std::set<std::int64_t>> reads_;
  std::map<std::int64_t, std::vector<std::size_t>> read_at_;
  std::set<std::int64_t> held_;
  std::set<std::int64_t> slots_of_the_caller_;  // packed since the last frame_create
  std::map<std::int64_t, std::pair<std::size_t, std::vector<std::int64_t>>> inputs_;
  std::map<std::string, std::pair<std::size_t, std::int64_t>> cache_;
};

/// Files of the sound ones, in the order of their names.
std::vector<fs::path> sound_files() {
  const char* given = std::getenv("REMATSIM_SHARED");
  const fs::path folder =
      fs::path(given != nullptr ? given : REMATSIM_SHARED_DEFAULT) / "data" / "recorded" / "traces";
  std::vector<fs::path> files;
  if (std::ifstream verdicts(folder / "verdicts.json"); verdicts) {
    for (const Json& row : Json::parse(verdicts))
      if (row["verdict"] == "ok") files.push_back(folder / row["file"].get<std::string>());
  } else {
    WARN("no " << folder.string() << ": faults are planted into traces/recorded only");
    for (const auto& entry :
         fs::directory_iterator(fs::path(REMATSIM_SOURCE_DIR) / "traces/recorded")) {
      if (const std::string name = entry.path().filename().string();
          name.ends_with(".gz") && name.rfind("F_", 0) != 0 && name.rfind("13e_", 0) != 0)
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string Recording::text(std::size_t at, const char* field) const {
  return text_of(events[at], field);
}

bool Recording::in_a_replay(std::size_t at) const {
  return std::any_of(replays.begin(), replays.end(), [at](const RecordedReplay& replay) {
    return replay.begin <= at && at < replay.closed;
  });
}

std::vector<Recording> sound_recordings() {
  std::vector<Recording> recordings;
  for (const fs::path& file : sound_files()) {
    Recording recording;
    recording.name = file.filename().string();
    std::istringstream lines(unpacked_bytes(file.string()));
    bool stopped = false;
    std::size_t n_steps = 0;
    for (std::string line; std::getline(lines, line);) {
      recording.events.push_back(Json::parse(line));
      recording.events.back().erase("seq");
      const std::string kind = text_of(recording.events.back(), "kind");
      stopped = stopped || kind == "error";
      if (kind == "step_end") ++n_steps;
    }
    if (stopped || n_steps != 1) continue;
    Survey(recording).run();
    recordings.push_back(std::move(recording));
  }
  return recordings;
}

}  // namespace remat
