#include "schedules/pipelines/two_way.hpp"

#include "schedules/pipelines/list_builder.hpp"

namespace remat {
namespace {

class TwoWayBuilder {
 public:
  TwoWayBuilder(RankList& list, const TwoWayRank& rank)
      : rank_(rank), list_(list), first_{rank.first}, second_{rank.second} {}

  void build() {
    warm_up();
    main_part();
    cool_down();
  }

 private:
  /// What of a flow is in the list already.
  struct Flow {
    PipelineAction place;
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
  };

  static PipelineAction next(const Flow& flow, Work work, std::int32_t microbatch) {
    PipelineAction action = flow.place;
    action.work = work;
    action.microbatch = microbatch;
    return action;
  }

  void forward(Flow& flow) { list_.add(next(flow, Work::forward, flow.forwards++)); }
  void backward(Flow& flow) { list_.add(next(flow, Work::backward, flow.backwards++)); }
  void dx(Flow& flow) {
    list_.add(next(flow, Work::dx, flow.backwards));
    split_.push_back(next(flow, Work::dw, flow.backwards++));
  }
  /// The oldest DW that is still to come.
  void dw() { list_.add(split_[n_dw_++]); }

  void forward_with_backward(Flow& forwards, Flow& backwards) {
    PipelineAction action = next(forwards, Work::forward, forwards.forwards++);
    action.joined = Joined::overlapped;
    list_.add(action);
    backward(backwards);
  }

  void warm_up() {
    for (std::int32_t i = 0; i < 2 * rank_.to_middle; ++i)
      forward(first_);
    for (std::int32_t i = 0; i <= rank_.from_end; ++i) {
      forward(first_);
      forward(second_);
    }
    for (std::int32_t i = 0; i < rank_.to_middle; ++i) {
      dx(second_);
      dw();
      forward(second_);
    }
  }

  void main_part() {
    const std::int32_t half = rank_.to_middle + rank_.from_end + 1;
    const std::int32_t n = rank_.microbatches - 2 * half + rank_.from_end + 1;
    for (std::int32_t i = 0; i < n; ++i) {
      // Where the flows turn, the first pair is not overlapped: its forward goes on at once.
      if (i == 0 && rank_.to_middle == 0) {
        forward(first_);
        backward(second_);
      } else {
        forward_with_backward(first_, second_);
      }
      forward_with_backward(second_, first_);
    }
  }

  void cool_down() {
    for (std::int32_t i = 0; i < rank_.to_middle; ++i) {
      backward(second_);
      forward_with_backward(second_, first_);
    }
    // The later half of these backwards, counted over both flows, leaves its DW for the end.
    for (std::int32_t i = 0; i < 2 * (rank_.from_end + 1); ++i) {
      Flow& flow = i % 2 == 0 ? second_ : first_;
      if (i <= rank_.from_end) {
        backward(flow);
      } else {
        dx(flow);
      }
    }
    for (std::int32_t i = 0; i < rank_.to_middle; ++i) {
      dw();
      dx(first_);
    }
    while (n_dw_ < split_.size())
      dw();
  }

  const TwoWayRank& rank_;
  ListBuilder list_;
  Flow first_;
  Flow second_;
  RankList split_;  // the DW's of all DX's so far, oldest first
  std::size_t n_dw_ = 0;
};

}  // namespace

RankList two_way_list(const TwoWayRank& rank) {
  RankList list;
  TwoWayBuilder(list, rank).build();
  return list;
}

}  // namespace remat
