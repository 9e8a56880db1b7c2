#include "properties/mutant_run.hpp"

namespace remat {

MutantRun run_mutant(const Mutant& mutant, const MutantRunOptions& options) {
  CampaignOptions campaign;
  campaign.seed = options.seed;
  campaign.cases_max = options.cases_max;
  campaign.jobs = options.jobs;
  campaign.protocol = mutant.protocol;
  campaign.fault = fault_of(&mutant);
  if (options.is_over)
    campaign.is_over = [&](std::uint64_t, std::uint64_t, std::size_t) { return options.is_over(); };
  const CampaignResult result = run_campaign(campaign);
  MutantRun run;
  run.cases = result.cases;
  if (result.failures.empty()) return run;
  ShrinkOptions shrinking{.fault = campaign.fault,
                          .protocol = std::string(mutant.protocol),
                          .runs_max = options.shrinks ? 20'000U : 0U,
                          .is_over = options.is_over};
  run.caught = counterexample_of(result.failures.front(), shrinking);
  return run;
}

}  // namespace remat
