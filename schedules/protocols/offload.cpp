#include "schedules/protocols/offload.hpp"

namespace remat {

std::unique_ptr<Protocol> make_offload(const ProtocolOptions& options) {
  return std::make_unique<OffloadProtocol>(options);
}

}  // namespace remat
