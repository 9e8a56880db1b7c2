#include "schedules/protocols/torch_reentrant.hpp"

namespace remat {

std::unique_ptr<Protocol> make_torch_reentrant(const ProtocolOptions& options) {
  return std::make_unique<TorchReentrantProtocol>(options);
}

}  // namespace remat
