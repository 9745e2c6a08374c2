#pragma once

#include <vector>

#include <Eigen/Core>

namespace cpverify::reference {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Keys and values of one KV head of one request, by position; n of them.
struct KeyValueHead {
  RowMatrix k;                        ///< [n, D]
  RowMatrix abs_k;                    ///< |k|; empty when the bounds are not wanted.
  RowMatrix v;                        ///< [n, D], or [n, 2D] holding v and |v| side by side.
  std::vector<double> max_abs_value;  ///< Over what the query at j sees and all d, of |v|. [n]
};

/// Consecutive queries of one request, all query heads that read one KV head. Row t * group + g is
/// query t, head g of the group.
struct QueryTile {
  RowMatrix q;                      ///< [queries * group, D], softmax_scale multiplied in.
  Eigen::Index group = 1;           ///< Query heads per KV head.
  Eigen::Index first_num_keys = 0;  ///< Query t sees keys 0 .. first_num_keys + t - 1,
  Eigen::Index window = 0;          ///< or the last `window` of these, if it is not 0.
  double soft_cap = 0.0;            ///< x in x tanh(score / x); 0: none.
  Eigen::ArrayXd sinks;             ///< Logit of each head, which weighs without a value; or empty.
};

struct TileResult {
  RowMatrix out;                 ///< [rows, D], or [rows, 2D]: out, then sum_j p_j |v_j|.
  Eigen::ArrayXd lse;            ///< [rows], natural log; -inf without keys.
  Eigen::ArrayXd max_abs_score;  ///< [rows]; 0 without keys, empty without bounds.
};

/// Attention of one query tile, by the definition: all scores, their exact maximum, exp, sum, then
/// P V. Keys that no query of the tile sees are not touched. One object per thread: it keeps its
/// buffers from call to call.
class AttentionTile {
 public:
  /// `result` gets bounds iff `keys` holds |k| and |v|.
  void compute(const QueryTile& tile, const KeyValueHead& keys, TileResult& result);

 private:
  /// Where the scores of the tile lie: `rows` rows of `stride` doubles.
  struct Strip {
    Eigen::Index rows = 0;
    Eigen::Index first = 0;   ///< First key that the first query sees.
    Eigen::Index width = 0;   ///< Keys from there to the last one that the last query sees.
    Eigen::Index stride = 0;  ///< Width rounded up to whole groups of lanes.
  };

  void compute_scores(const RowMatrix& q, const RowMatrix& k, const Strip& strip);
  /// Adds the sinks to maxima and sums of weights.
  void count_sinks(const QueryTile& tile, const Strip& strip);
  void compute_weights(const QueryTile& tile, const Strip& strip);
  void compute_outputs(const RowMatrix& v, const Strip& strip, RowMatrix& target);
  void compute_lse(const QueryTile& tile, const Strip& strip, Eigen::ArrayXd& target);
  void read_max_abs_scores(const QueryTile& tile, const Strip& strip, Eigen::ArrayXd& target);

  Eigen::ArrayXd scores_;  ///< [rows, stride]: scores, then weights exp(s - m).
  Eigen::ArrayXd maxima_;  ///< m per row, padded to whole groups of lanes.
  Eigen::ArrayXd sums_;    ///< l per row, padded likewise.
};

/// Makes Eigen block its products for one fixed machine instead of the one it runs on: how a
/// product is blocked decides the order of its additions. Before the first product; any thread.
void fix_product_blocking();

}  // namespace cpverify::reference
