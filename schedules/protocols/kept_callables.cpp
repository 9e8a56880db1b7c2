#include "schedules/protocols/kept_callables.hpp"

namespace remat {

KeptCallablesProtocol::KeptCallablesProtocol(const ProtocolOptions& options)
    : SaveUnitProtocol(options, {.sees_compiled = false}) {}

std::unique_ptr<Protocol> make_kept_callables(const ProtocolOptions& options) {
  return std::make_unique<KeptCallablesProtocol>(options);
}

}  // namespace remat
