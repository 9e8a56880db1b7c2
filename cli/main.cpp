#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "cli/campaign_commands.hpp"
#include "cli/check_command.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/predict_command.hpp"
#include "cli/schedule_command.hpp"
#include "cli/schema_command.hpp"
#include "cli/simulate_command.hpp"
#include "model/errors.hpp"
#include "model/listed.hpp"
#include "schedules/pipeline_registry.hpp"
#include "sim/pipeline_channel.hpp"

namespace remat {
namespace {

using Command = std::function<ExitCode()>;

void add_check(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* check = app.add_subcommand("check", "hold recorded runs against the invariants");
  check
      ->add_option("TRACE", options->traces, "ckpt-trace files, plain or gzip; - is standard input")
      ->type_name("");
  check->add_option("--invariant", options->invariants, "run these only: names of --list")
      ->type_name("NAME");
  check->add_flag("--list", options->list, "say what each invariant is, and run none");
  check->add_flag("--summary", options->summary, "add counts, replays and bytes of each trace");
  check->add_flag("--json", options->json, "print one JSON object");
  check->add_flag("--verbose", options->verbose, "say what was not checked and what is unknown");
  check->add_flag("--progress", options->progress,
                  "show progress, also where standard error is no terminal");
  check->add_option("-o,--output", options->output, "write to this file instead of standard output")
      ->type_name("FILE");
  check->footer(
      "Example:\n  rematsim check run.jsonl.gz --invariant version_unchanged --json\n"
      "Exit status: 0 all hold, 1 a violation, 2 a file that cannot be read or bad usage.");
  check->callback([options, &chosen] {
    chosen = [options] {
      options->progress = options->progress || progress_is_wanted();
      return check_command(*options);
    };
  });
}

void add_predict(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* predict =
      app.add_subcommand("predict", "foresee replay and backward from a recording's forward part");
  predict
      ->add_option("TRACE", options->traces, "ckpt-trace files, plain or gzip; - is standard input")
      ->type_name("");
  predict->add_flag("--list", options->list, "print every predicted event");
  predict->add_option("--trace", options->trace, "write the simulator's own trace to this file")
      ->type_name("FILE");
  predict->add_flag("--json", options->json, "print one JSON object");
  predict
      ->add_option("-o,--output", options->output, "write to this file instead of standard output")
      ->type_name("FILE");
  predict->footer(
      "Example:\n  rematsim predict run.jsonl.gz --list\n"
      "Exit status: 0 as recorded, 1 a prediction differs, 2 a file that cannot be read or bad "
      "usage.");
  predict->callback(
      [options, &chosen] { chosen = [options] { return predict_command(*options); }; });
}

void add_simulate(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* simulate =
      app.add_subcommand("simulate", "run a scenario: time, bytes, counts, verdict");
  simulate->add_option("SCENARIO", options->scenario, "a scenario file; - is standard input")
      ->required()
      ->type_name("");
  simulate->add_option("--protocol", options->protocol, "run it under this one instead of its own");
  simulate->add_option("--trace", options->trace, "write the trace to this file")
      ->type_name("FILE");
  simulate->add_option("--events-max", options->events_max, "stop after so many phases")
      ->type_name("N");
  simulate->add_flag("--json", options->json, "print one JSON object");
  simulate
      ->add_option("-o,--output", options->output, "write to this file instead of standard output")
      ->type_name("FILE");
  simulate->footer(
      "Example:\n  rematsim simulate sim/scenarios/two_blocks.json --trace run.jsonl.gz\n"
      "Exit status: 0 fine, 1 an error, a violation or wrong gradients, 2 bad input.");
  simulate->callback(
      [options, &chosen] { chosen = [options] { return simulate_command(*options); }; });
}

void add_schedule_source(CLI::App& schedule, ScheduleOptions& options) {
  schedule
      .add_option("SCHEDULE", options.source,
                  "a schedule's name, or a file of lists (CSV or JSON); - is standard input: " +
                      known_pipelines())
      ->required()
      ->type_name("");
  schedule.add_option("--ranks", options.ranks, "how many ranks")->type_name("P");
  schedule.add_option("--microbatches", options.microbatches, "how many micro-batches")
      ->type_name("M");
  schedule
      .add_option("--chunks", options.chunks, "stages on each rank (as many as the schedule has)")
      ->type_name("V");
  schedule.add_option("--slices", options.slices, "pieces of a sequence, seq1f1b only (1)")
      ->type_name("K");
  schedule
      .add_option("--replay", options.replay,
                  "an R before each B or DX: none; on-demand waits for the gradient; pre-trigger")
      ->capture_default_str();
  schedule.add_option("--distance", options.distance, "how many places earlier R stands (0)")
      ->type_name("D");
}

void add_schedule(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ScheduleOptions>();
  CLI::App* schedule =
      app.add_subcommand("schedule", "run a pipeline schedule: makespan, bubble, peaks, deadlocks");
  add_schedule_source(*schedule, *options);
  schedule
      ->add_option("--cost", options->cost,
                   "F=1,DX=1,DW=1,COMM=0: integers, of one stage; B is DX and DW, R is F")
      ->type_name("COSTS");
  schedule
      ->add_option("--costs", options->costs_file, "a JSON file of costs by stage and micro-batch")
      ->type_name("FILE");
  schedule
      ->add_option("--channel", options->channel, "how messages go: " + std::string(known_channels))
      ->capture_default_str();
  schedule->add_option("--lowering", options->lowering,
                       "put messages in: naive, torch, torch-deferred (naive where the channel "
                       "needs some)");
  schedule
      ->add_option("--memory-limit", options->memory_limit,
                   "activations that a rank can hold; decimals are fine")
      ->type_name("N");
  schedule
      ->add_option("--freed-at-dx", options->freed_at_dx,
                   "how much of its activations DX frees; DW the rest")
      ->type_name("PERCENT")
      ->capture_default_str();
  schedule->add_flag("--list", options->list,
                     "print the lists; with --json times, bubbles and the critical path");
  schedule->add_flag("--csv", options->csv, "print the lists as CSV and nothing else");
  schedule->add_flag("--json", options->json, "print one JSON object");
  schedule
      ->add_option("-o,--output", options->output, "write to this file instead of standard output")
      ->type_name("FILE");
  schedule->footer(
      "Example:\n  rematsim schedule 1f1b --ranks 4 --microbatches 8 --replay pre-trigger\n"
      "Exit status: 0 fine, 1 lists that are not whole or never finish, 2 bad input.");
  schedule->callback(
      [options, &chosen] { chosen = [options] { return schedule_command(*options); }; });
}

void add_schema(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SchemaOptions>();
  CLI::App* schema = app.add_subcommand("schema", "print the JSON Schema of a format");
  schema
      ->add_option("NAME", options->name,
                   "which format: trace (one line of a ckpt-trace file), scenario")
      ->required()
      ->type_name("");
  schema
      ->add_option("-o,--output", options->output, "write to this file instead of standard output")
      ->type_name("FILE");
  schema->footer("Example:\n  rematsim schema trace > ckpt-trace.schema.json");
  schema->callback([options, &chosen] { chosen = [options] { return schema_command(*options); }; });
}

/// What is wrong with the command line, and where to read on.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::string& first_word) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  const bool is_command =
      std::any_of(commands.begin(), commands.end(),
                  [&](const CLI::App* command) { return command->get_name() == first_word; });
  if (is_command) return std::string(error.what()) + "; see rematsim " + first_word + " --help";
  const std::string known = listed(commands, &CLI::App::get_name);
  if (first_word.empty())
    return "no command is given; expected one of " + known + "; see rematsim --help";
  if (first_word.front() == '-') return std::string(error.what()) + "; see rematsim --help";
  return "unknown command '" + first_word + "'; expected one of " + known + "; see rematsim --help";
}

/// Runs what the command line asks for; every error ends here, as one line.
ExitCode run(int argc, char** argv) {
  CLI::App app("rematsim checks the execution orders of activation checkpointing.", "rematsim");
  app.set_version_flag("--version", "rematsim " REMATSIM_VERSION);
  app.require_subcommand(1);
  app.footer("Example:\n  rematsim check traces/recorded/02_nonreentrant_early_stop.jsonl.gz");
  Command chosen;
  add_check(app, chosen);
  add_predict(app, chosen);
  add_simulate(app, chosen);
  add_schedule(app, chosen);
  add_campaign_commands(app, chosen);
  add_schema(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return static_cast<ExitCode>(app.exit(error));  // help or version
    print_error(usage_error(app, error, argc > 1 ? argv[1] : ""));
    return ExitCode::bad_input;
  }
  return chosen();
}

}  // namespace
}  // namespace remat

int main(int argc, char** argv) {
  using remat::ExitCode;
  try {
    return static_cast<int>(remat::run(argc, argv));
  } catch (const remat::InputError& error) {
    remat::print_error(error.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const remat::InternalError& error) {
    remat::print_error(std::string("internal: ") + error.what());
    return static_cast<int>(ExitCode::internal);
  } catch (const std::bad_alloc&) {
    remat::print_error("internal: out of memory");
    return static_cast<int>(ExitCode::internal);
  } catch (const std::exception& error) {
    remat::print_error(std::string("internal: ") + error.what());
    return static_cast<int>(ExitCode::internal);
  }
}
