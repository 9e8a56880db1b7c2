#include "schedules/protocols/kept_ops.hpp"

namespace remat {

KeptOpsProtocol::KeptOpsProtocol(const ProtocolOptions& options) : SaveUnitProtocol(options, {}) {}

std::unique_ptr<Protocol> make_kept_ops(const ProtocolOptions& options) {
  return std::make_unique<KeptOpsProtocol>(options);
}

}  // namespace remat
