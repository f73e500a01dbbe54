// Greedy paths of generalised linear models: many problems (folds, ridges) over the columns of one matrix, in lockstep.
//
// Every step takes one product of the matrix with the gradients of all problems; each problem chooses the column that
// correlates most with its gradient, and refits all coefficients by Newton's method. No problem copies rows or columns:
// a sample that it leaves out has weight 0, and means and scales of its columns are numbers beside the shared matrix.
// Coefficients are those of the shared columns, at unit scale over all samples; a ridge is one on coefficients of columns
// at unit scale over the samples of the problem, so that it has a factor for each column. estimators/forward.py is the
// plain version.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr int ROWS = 512;                         // of a block: what is done to them stays in the cache
constexpr int WIDE = VECTOR_BYTES == 64 ? 4 : 2;  // vectors of a panel
constexpr int TOGETHER = 6;                       // gradients whose products with a panel are in registers
constexpr double DEAD = -1e300;
constexpr double TINY = 1e-300;

// e^x for x from -708 to 709: 2^k e^r with |r| <= log(2) / 2.
inline double power_of_e(double x) {
    const double shifted = x * 0x1.71547652b82fep0 + 0x1.8p52, k = shifted - 0x1.8p52;
    const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double sum = 1.0 / 6227020800;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = (sum * r + 1.0) * r + 1.0;
    return sum * __builtin_bit_cast(double, (__builtin_bit_cast(uint64_t, shifted) << 52) + (uint64_t(1023) << 52));
}

// log(1 + q) for q from 0 to 1: 2 artanh(u / (2 + u)), where above sqrt(2) - 1 log(2) is taken out.
inline double log_of_one_plus(double q) {
    const bool above = q > 0.41421356;
    const double u = above ? 0.5 * (q - 1.0) : q, s = u / (2.0 + u), z = s * s;
    double sum = 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    return (above ? 0.69314718055994530942 : 0.0) + 2.0 * s * (1.0 + z * sum);
}

// <t, each of four columns>.
inline void four_dots(const double *t, const double *const *columns, int from, int count, double *out) {
    const double *a = columns[0] + from, *b = columns[1] + from, *c = columns[2] + from, *d = columns[3] + from;
    double p = 0, q = 0, r = 0, s = 0;
#pragma omp simd reduction(+ : p, q, r, s)
    for (int i = 0; i < count; ++i) p += t[i] * a[i], q += t[i] * b[i], r += t[i] * c[i], s += t[i] * d[i];
    out[0] = p, out[1] = q, out[2] = r, out[3] = s;
}

// out[k] += <t, column k> for the first `count` columns.
template <class Add>
inline void dots(const double *t, const double *const *columns, int count, int from, int rows, Add add) {
    int k = 0;
    double four[4];
    for (; k + 4 <= count; k += 4) {
        four_dots(t, columns + k, from, rows, four);
        for (int j = 0; j < 4; ++j) add(k + j, four[j]);
    }
    for (; k < count; ++k) add(k, dot(t, columns[k] + from, rows));
}

// Numbers whose memory grows.
template <class T> class Growing {
    T *memory = nullptr;
    size_t room = 0;

  public:
    Growing() = default;
    Growing(const Growing &) = delete;
    ~Growing() { std::free(memory); }
    void reserve(size_t count) {
        if (count <= room) return;
        const size_t wanted = count + room;
        T *larger = static_cast<T *>(std::calloc(wanted, sizeof(T)));
        if (!larger) throw std::bad_alloc();
        if (room) std::memcpy(larger, memory, room * sizeof(T));
        std::free(memory);
        memory = larger, room = wanted;
    }
    operator T *() const { return memory; }
};

// The columns of a matrix at unit scale: x = scale (stored + centre), 0 where a column is constant. Dense ones are in
// panels of PANEL columns, by rows; sparse ones keep their zeros, and have centre 0.
template <class T> class UnitColumns {
    static constexpr int N = LANES<T>, PANEL = WIDE * N;
    Array<T> stored;
    Array<int32_t> rows;
    Array<int64_t> starts;
    bool is_sparse;

  public:
    int n, p;
    Array<double> scale, centre;

    UnitColumns(const GreedyMatrix<T> &X, bool centred, int threads)
        : is_sparse(!X.dense), n(X.n), p(X.p), scale(round_up(X.p, PANEL)), centre(round_up(X.p, PANEL)) {
        if (is_sparse) {
            copy_sparse(X, centred);
        } else {
            stored.allocate(size_t(panels()) * n * PANEL);
            in_parallel(threads, panels(), [&](int panel) { pack(X, centred, panel); });
        }
    }

    int panels() const { return (p + PANEL - 1) / PANEL; }

    void column(int j, double *out) const {
        if (!is_sparse) {
            const T *from = stored + size_t(j / PANEL) * n * PANEL + j % PANEL;
            for (int i = 0; i < n; ++i) out[i] = from[size_t(i) * PANEL];
            return;
        }
        std::memset(out, 0, n * sizeof(double));
        for (int64_t e = starts[j]; e < starts[j + 1]; ++e) out[rows[e]] = stored[e];
    }

    // each(piece, first column, width, sums): sums[v * PANEL + b] = <vectors[v], column first + b>, or its square.
    template <bool SQUARED, class Each>
    void products(const double *const *vectors, int count, int threads, Each each) const {
        const int step = is_sparse ? N : TOGETHER, groups = (count + step - 1) / step;
        Array<T> side(size_t(groups) * n * step);  // vectors side by side, `step` at a time
        for (int v = 0; v < count; ++v) {
            T *to = side + size_t(v / step) * n * step + v % step;
            for (int i = 0; i < n; ++i) to[size_t(i) * step] = T(vectors[v][i]);
        }
        in_parallel(threads, pieces(), [&](int piece) {
            Array<double> sums(size_t(groups) * step * PANEL);
            for (int panel = piece * AT_ONCE; panel < smaller((piece + 1) * AT_ONCE, panels()); ++panel) {
                const int first = panel * PANEL, width = smaller(PANEL, p - first);
                if (is_sparse) sparse_products<SQUARED>(side, groups, first, width, sums);
                else dense_products<SQUARED>(side, groups, count, panel, sums);
                each(piece, first, width, static_cast<const double *>(sums));
            }
        });
    }
    static constexpr int AT_ONCE = 8, panel_width = PANEL;
    int pieces() const { return (panels() + AT_ONCE - 1) / AT_ONCE; }

  private:
    // 2^-k for numbers of magnitude 2^k.
    static double inverse_magnitude(double largest) {
        int exponent = 0;
        std::frexp(largest, &exponent);
        return std::ldexp(1.0, -larger(exponent, -1000));
    }

    // Sets scale and centre of a column from its factor, and its mean and deviation after multiplication with it.
    void set_units(int j, bool varies, double factor, double mean, double deviation) {
        scale[j] = varies && deviation > 0 ? deviation / factor : 0.0;
        centre[j] = scale[j] > 0 ? mean / deviation : 0.0;
    }

    void pack(const GreedyMatrix<T> &X, bool centred, int panel) {
        const int first = panel * PANEL, width = smaller(PANEL, p - first);
        T *out = stored + size_t(panel) * n * PANEL;
        double low[PANEL], high[PANEL], factor[PANEL], mean[PANEL] = {}, square[PANEL] = {};
        for (int b = 0; b < PANEL; ++b) low[b] = INFINITY, high[b] = -INFINITY;
        for (int i = 0; i < n; ++i) {
            const T *x = X.dense + X.rows[i] * X.row_stride + first * X.column_stride;
            for (int b = 0; b < width; ++b) {
                const double v = out[size_t(i) * PANEL + b] = x[b * X.column_stride];
                low[b] = smaller(low[b], v), high[b] = larger(high[b], v);
            }
        }
        for (int b = 0; b < width; ++b) factor[b] = inverse_magnitude(larger(-low[b], high[b]));
        for (int i = 0; i < n; ++i)
            for (int b = 0; b < width; ++b) mean[b] += out[size_t(i) * PANEL + b] * factor[b];
        for (int b = 0; b < width; ++b) mean[b] = centred ? mean[b] / n : 0.0;
        for (int i = 0; i < n; ++i)
            for (int b = 0; b < width; ++b) {
                const double v = out[size_t(i) * PANEL + b] * factor[b] - mean[b];
                square[b] += v * v;
            }
        for (int b = 0; b < width; ++b) {
            const bool varies = centred ? low[b] < high[b] : low[b] < 0 || high[b] > 0;
            const double deviation = std::sqrt(square[b] / n);
            set_units(first + b, varies, factor[b], mean[b], deviation);
            square[b] = scale[first + b] > 0 ? 1.0 / deviation : 0.0;
        }
        for (int i = 0; i < n; ++i)
            for (int b = 0; b < width; ++b) {
                T &v = out[size_t(i) * PANEL + b];
                v = T((v * factor[b] - mean[b]) * square[b]);
            }
    }

    void copy_sparse(const GreedyMatrix<T> &X, bool centred) {
        Array<int32_t> place(X.all_rows);  // of a row of X among those used, plus 1
        for (int i = 0; i < n; ++i) place[X.rows[i]] = i + 1;
        const int64_t entries = X.pointers[p];
        stored.allocate(entries), rows.allocate(entries), starts.allocate(p + 1);
        int64_t at = 0;
        for (int j = 0; j < p; ++j) {
            double low = INFINITY, high = -INFINITY, mean = 0, square = 0;
            for (int64_t e = X.pointers[j]; e < X.pointers[j + 1]; ++e) {
                const int row = place[X.indices[e]];
                if (!row) continue;
                stored[at] = X.values[e], rows[at++] = row - 1;
                low = smaller(low, double(X.values[e])), high = larger(high, double(X.values[e]));
            }
            starts[j + 1] = at;
            const int64_t begin = starts[j], count = at - begin;
            if (count < n) low = smaller(low, 0.0), high = larger(high, 0.0);
            const double factor = inverse_magnitude(larger(-low, high));
            for (int64_t e = begin; e < at; ++e) mean += stored[e] * factor;
            mean = centred ? mean / n : 0.0;
            for (int64_t e = begin; e < at; ++e) square += (stored[e] * factor - mean) * (stored[e] * factor - mean);
            const double deviation = std::sqrt((square + double(n - count) * mean * mean) / n);
            set_units(j, centred ? low < high : low < 0 || high > 0, factor, 0.0, deviation);
            const double inverse = scale[j] > 0 ? 1.0 / deviation : 0.0;
            for (int64_t e = begin; e < at; ++e) stored[e] = T(stored[e] * factor * inverse);
        }
    }

    // The products of a panel with C vectors, on some rows.
    template <int C, bool SQUARED> static void tile(const T *x, const T *side, int count, double *sums) {
        Vec<T> a[C][WIDE] = {};
        for (int i = 0; i < count; ++i, x += PANEL, side += TOGETHER) {
            Vec<T> v[WIDE];
            for (int k = 0; k < WIDE; ++k) v[k] = load(x + k * N);
            for (int k = 0; SQUARED && k < WIDE; ++k) v[k] *= v[k];
            for (int c = 0; c < C; ++c) {
                const Vec<T> g = splat(side[c]);
                for (int k = 0; k < WIDE; ++k) a[c][k] += v[k] * g;
            }
        }
        for (int c = 0; c < C; ++c)
            for (int b = 0; b < PANEL; ++b) sums[c * PANEL + b] += a[c][b / N][b % N];
    }

    template <bool SQUARED> void dense_products(const T *side, int groups, int count, int panel, double *sums) const {
        using Tile = void (*)(const T *, const T *, int, double *);
        static constexpr Tile tiles[] = {tile<1, SQUARED>, tile<2, SQUARED>, tile<3, SQUARED>,
                                         tile<4, SQUARED>, tile<5, SQUARED>, tile<6, SQUARED>};
        std::memset(sums, 0, size_t(groups) * TOGETHER * PANEL * sizeof(double));
        const T *x = stored + size_t(panel) * n * PANEL;
        for (int row = 0; row < n; row += ROWS)
            for (int group = 0; group < groups; ++group)
                tiles[smaller(TOGETHER, count - group * TOGETHER) - 1](
                    x + size_t(row) * PANEL, side + (size_t(group) * n + row) * TOGETHER, smaller(ROWS, n - row),
                    sums + size_t(group) * TOGETHER * PANEL);
    }

    template <bool SQUARED> void sparse_products(const T *side, int groups, int first, int width, double *sums) const {
        for (int b = 0; b < width; ++b)
            for (int group = 0; group < groups; ++group) {
                Vec<T> sum{};
                const T *from = side + size_t(group) * n * N;
                for (int64_t e = starts[first + b]; e < starts[first + b + 1]; ++e)
                    sum += splat(SQUARED ? stored[e] * stored[e] : stored[e]) * load(from + size_t(rows[e]) * N);
                for (int k = 0; k < N; ++k) sums[(size_t(group) * N + k) * PANEL + b] = sum[k];
            }
    }
};

// What all problems share: the loss, its targets, and the scores of classes by Helmert's contrasts: with
// r_o = 1 / sqrt((o + 1)(o + 2)), contrast o is r_o for the classes up to o, and -(o + 1) r_o for class o + 1.
struct SharedLoss {
    GreedyLoss kind;
    int n, classes, outputs;  // outputs: columns of coefficients
    double width;
    bool intercept;
    const double *y;  // outputs x n, or n labels

    bool coupled() const { return kind == GreedyLoss::multinomial; }
    static double contrast(int o) { return 1.0 / std::sqrt((o + 1.0) * (o + 2.0)); }
};

// Rows with a weight that is not 0, in stretches of at most ROWS.
struct Stretches {
    Array<int32_t> begin, length;
    int count = 0;

    void find(const double *weights, int n) {
        constexpr int GAP = 32;  // fewer rows of weight 0 than this are no gap
        begin.allocate(n / GAP + n / ROWS + 2), length.allocate(n / GAP + n / ROWS + 2);
        for (int i = 0; i < n;) {
            if (weights[i] == 0.0) {
                ++i;
                continue;
            }
            int last = i;
            for (int k = i; k < smaller(n, i + ROWS) && k - last <= GAP; ++k)
                if (weights[k] != 0.0) last = k;
            begin[count] = i, length[count++] = last + 1 - i;
            i = last + 1;
        }
    }
};

// One problem: its active columns (the first are ones, where there is an intercept), and their coefficients.
class GreedyProblem {
    const SharedLoss &shared;
    const double *weights, *held;
    Stretches training, testing;
    int m, u, blocks;  // outputs; outputs that a Hessian couples; different Hessians
    double l2, tol;
    Growing<const double *> columns;
    Growing<double> ridge, theta, slope, trial, trial_slope, direction, solution, H, L;
    Array<double> curvature, probability, work;
    int factored = 0;    // columns in L
    bool stale = false;  // L is that of other coefficients

  public:
    int s = 0;  // active columns
    Growing<int32_t> features;
    Array<double> gradient;  // outputs x n
    double value = 0, floor = DEAD, infimum = 0;
    bool alive = true;

    GreedyProblem(const SharedLoss &shared, const double *weights, const double *held, double l2, double tol,
                  const double *ones)
        : shared(shared), weights(weights), held(held), m(shared.outputs), u(shared.coupled() ? m : 1),
          blocks(shared.coupled() || shared.kind == GreedyLoss::squares ? 1 : m), l2(l2), tol(tol),
          gradient(size_t(m) * shared.n) {
        training.find(weights, shared.n);
        if (held) testing.find(held, shared.n);
        curvature.allocate(size_t(shared.coupled() ? 0 : blocks) * shared.n);
        probability.allocate(shared.coupled() ? size_t(shared.classes) * shared.n : 0);
        work.allocate(size_t(3 * m + shared.classes + 4) * ROWS);
        if (shared.kind == GreedyLoss::poisson)
            for (int64_t i = 0; i < int64_t(m) * shared.n; ++i)
                if (const double y = shared.y[i]; y > 0) infimum += weights[i % shared.n] * (y - y * std::log(y));
        reserve(1);
        if (shared.intercept) columns[s++] = ones, set_intercepts();
        value = evaluate(theta, slope);
        if (shared.intercept) refit();
    }

    void set_floor(double fraction) {
        alive = value > infimum;
        floor = infimum + fraction * (value - infimum);
    }

    // The largest score of a column, up to rounding: the squared norm of the gradient in the metric of the weights.
    double largest_score() const {
        double sum = 0;
        for (int o = 0; o < m; ++o)
            each_block(training, [&](int r, int count) {
                const double *g = gradient + size_t(o) * shared.n;
                for (int i = r; i < r + count; ++i) sum += weights[i] > 0 ? g[i] * (g[i] / weights[i]) : 0.0;
            });
        return sum;
    }

    void enter(int feature, const double *column, double factor) {
        reserve(s + 1);
        features[s - intercepts()] = feature, columns[s] = column, ridge[s] = l2 * factor;
        for (int o = 0; o < m; ++o) theta[s * m + o] = slope[s * m + o] = 0;
        ++s;
        each_block(training, [&](int r, int count) {
            for (int o = 0; o < m; ++o)
                slope[(s - 1) * m + o] += dot(gradient + size_t(o) * shared.n + r, column + r, count);
        });
    }

    // Newton's method, with a factor of the Hessian that is kept as long as it pays.
    void refit() {
        const int size = s * m;
        if (factored == 0 || factored == s || !(shared.kind == GreedyLoss::squares || s > 3)) refresh();
        else extend();
        const double pairs = shared.coupled() ? m * (m + 1) / 2.0 : blocks, dimension = double(s) * u;
        const double hessian_cost = s * (s / 2.0) * pairs + dimension * dimension * dimension / 3 * blocks / shared.n;
        const bool squares = shared.kind == GreedyLoss::squares;
        const double step_cost = 2.0 * size + (squares ? 1.5 : 15.0 * (shared.coupled() ? shared.classes : m));
        double before = -1;
        for (int turn = 0; turn < 100; ++turn) {
            solve();
            double decrease = 0;
            for (int i = 0; i < size; ++i) decrease += slope[i] * direction[i];
            const double above = larger(value - infimum, TINY);
            if (!(decrease > tol * above) || value <= floor) return;
            if (before > 0 && !stale && decrease > before / 4 && decrease < 1e-12 * above) return;  // rounding errors
            if (stale && before > 0) {
                const double rate = std::sqrt(decrease / before);
                const double left = rate < 1 ? 0.5 * std::log(tol * above / decrease) / std::log(rate) : 1e9;
                if (left * step_cost > hessian_cost + 2 * step_cost) {
                    refresh(), before = -1;
                    continue;
                }
            }
            const double step = line_search(decrease, size);
            if (step == 0) {
                value = evaluate(theta, slope);  // what belongs to the point where the search began
                if (!stale) return;
                refresh(), before = -1;
                continue;
            }
            before = step == 1 ? decrease : -1;
            stale = !squares;
            if (!squares && hessian_cost < step_cost) refresh();
        }
    }

    // The mean loss of the samples held out.
    double held_out_loss() {
        double sum = 0;
        each_block(testing, [&](int r, int count) {
            scores(theta, r, count);
            sum += loss<false>(held, r, count);
        });
        return sum;
    }

    // Coefficients (features, outputs or classes) of the columns in their own units, and intercepts.
    void coefficients(const double *scale, const double *centre, double *coef, double *intercept) const {
        const int across = shared.coupled() ? shared.classes : m, first = intercepts();
        for (int o = 0; o < across; ++o) intercept[o] = first ? classwise(theta, o) : 0.0;
        for (int k = 0; k < s - first; ++k)
            for (int o = 0; o < across; ++o) {
                const double b = classwise(theta + (k + first) * m, o);
                coef[k * across + o] = b / scale[features[k]];
                intercept[o] -= b * centre[features[k]];
            }
    }

  private:
    int intercepts() const { return shared.intercept; }
    static size_t row(int i) { return size_t(i) * (i + 1) / 2; }  // of a triangle by rows

    template <class Each> void each_block(const Stretches &of, Each each) const {
        for (int k = 0; k < of.count; ++k) each(of.begin[k], of.length[k]);
    }

    void reserve(int count) {
        const int size = count * m;
        columns.reserve(count), features.reserve(count), ridge.reserve(count);
        for (Growing<double> *each : {&theta, &slope, &trial, &trial_slope, &direction, &solution}) each->reserve(size);
        // the triangles of several Hessians are interleaved: block b of entry e is at e * blocks + b
        H.reserve(row(count * u) * blocks), L.reserve(row(count * u) * blocks);
    }

    double classwise(const double *contrasts, int c) const {
        if (!shared.coupled()) return contrasts[c];
        double sum = c ? -c * SharedLoss::contrast(c - 1) * contrasts[c - 1] : 0.0;
        for (int o = c; o < m; ++o) sum += SharedLoss::contrast(o) * contrasts[o];
        return sum;
    }

    void set_intercepts() {
        const double *y = shared.y;
        if (shared.coupled()) {
            Array<double> share(shared.classes);
            for (int i = 0; i < shared.n; ++i) share[int(y[i])] += weights[i];
            double sum = 0;  // of the logarithms of the classes so far
            for (int o = 0; o < m; ++o) {
                sum += std::log(larger(share[o], TINY));
                theta[o] = SharedLoss::contrast(o) * (sum - (o + 1) * std::log(larger(share[o + 1], TINY)));
            }
            return;
        }
        for (int o = 0; o < m; ++o) {
            double mean = 0;
            for (int i = 0; i < shared.n; ++i) mean += weights[i] * y[size_t(o) * shared.n + i];
            if (shared.kind == GreedyLoss::logistic) theta[o] = std::log(mean / (1 - mean));
            else theta[o] = shared.kind == GreedyLoss::poisson ? std::log(larger(mean, TINY)) : mean;
        }
    }

    // work[o * ROWS + i] = score o of row r + i.
    void scores(const double *coef, int r, int count) {
        for (int o = 0; o < m; ++o) {
            double *e = work + o * ROWS;
            for (int i = 0; i < count; ++i) e[i] = 0;
            int k = 0;
            for (; k + 4 <= s; k += 4) {
                const double *a = columns[k] + r, *b = columns[k + 1] + r, *c = columns[k + 2] + r,
                             *d = columns[k + 3] + r;
                const double ta = coef[k * m + o], tb = coef[(k + 1) * m + o], tc = coef[(k + 2) * m + o],
                             td = coef[(k + 3) * m + o];
#pragma omp simd
                for (int i = 0; i < count; ++i) e[i] += (ta * a[i] + tb * b[i]) + (tc * c[i] + td * d[i]);
            }
            for (; k < s; ++k) add(e, coef[k * m + o], columns[k] + r, count);
        }
    }

    // The loss of rows whose scores are in `work`, with these weights; DERIVATIVES sets gradient and curvature, too.
    template <bool DERIVATIVES> double loss(const double *w, int r, int count) {
        if (shared.coupled()) return class_loss<DERIVATIVES>(w + r, r, count);
        double sum = 0;
        w += r;
        for (int o = 0; o < m; ++o) {
            const double *e = work + o * ROWS, *y = shared.y + size_t(o) * shared.n + r;
            double *g = gradient + size_t(o) * shared.n + r, *h = curvature + size_t(o < blocks ? o : 0) * shared.n + r;
            if (shared.kind == GreedyLoss::squares) {
#pragma omp simd reduction(+ : sum)
                for (int i = 0; i < count; ++i) {
                    const double off = e[i] - y[i];
                    sum += 0.5 * w[i] * off * off;
                    if (DERIVATIVES) g[i] = w[i] * off, h[i] = w[i];
                }
            } else if (shared.kind == GreedyLoss::logistic) {
#pragma omp simd reduction(+ : sum)
                for (int i = 0; i < count; ++i) {
                    const double size = std::fabs(e[i]), q = power_of_e(-(size < 708 ? size : 708.0));
                    const double other = 1.0 / (1.0 + q), less = q * other, top = e[i] > 0 ? e[i] : 0.0;
                    sum += w[i] * (top - y[i] * e[i] + log_of_one_plus(q));
                    const double up = e[i] > 0 ? other : less, down = e[i] > 0 ? less : other;
                    if (DERIVATIVES) g[i] = w[i] * (y[i] > 0.5 ? -down : up), h[i] = w[i] * less * other;
                }
            } else if (shared.kind == GreedyLoss::poisson) {
#pragma omp simd reduction(+ : sum)
                for (int i = 0; i < count; ++i) {  // beyond 319, e^x goes on along its tangent, as in losses.py
                    const double low = e[i] < 319 ? e[i] : 319.0, c = low > -708 ? low : -708.0, q = power_of_e(c);
                    sum += w[i] * (q * (1 + (e[i] - low)) - y[i] * e[i]);
                    if (DERIVATIVES) g[i] = w[i] * (q - y[i]), h[i] = w[i] * q;
                }
            } else {
                const double width = shared.width;
#pragma omp simd reduction(+ : sum)
                for (int i = 0; i < count; ++i) {
                    const double off = e[i] - y[i], top = off < width ? off : width, c = top > -width ? top : -width;
                    sum += w[i] * c * (off - 0.5 * c);
                    if (DERIVATIVES) g[i] = w[i] * c, h[i] = c == off ? w[i] : 0.0;
                }
            }
        }
        return sum;
    }

    template <bool DERIVATIVES> double class_loss(const double *w, int r, int count) {
        const int K = shared.classes;
        const double *y = shared.y + r;
        double *z = work + m * ROWS, *own = z + K * ROWS, *top = own + ROWS, *sums = top + ROWS, *later = sums + ROWS;
        for (int i = 0; i < count; ++i) own[i] = 0, top[i] = DEAD, later[i] = 0, sums[i] = 0;
        for (int c = K - 1; c >= 0; --c) {  // later: the sum over contrasts from c on
            double *zc = z + c * ROWS;
            const double *e = work + c * ROWS, *last = e - ROWS;
            const double ahead = c < m ? SharedLoss::contrast(c) : 0.0,
                         back = c ? c * SharedLoss::contrast(c - 1) : 0.0;
            for (int i = 0; c < m && i < count; ++i) later[i] += ahead * e[i];
            for (int i = 0; i < count; ++i) zc[i] = later[i] - (c ? back * last[i] : 0.0);
            for (int i = 0; i < count; ++i) top[i] = larger(top[i], zc[i]), own[i] = y[i] == c ? zc[i] : own[i];
        }
        for (int c = 0; c < K; ++c) {
            double *zc = z + c * ROWS;
#pragma omp simd
            for (int i = 0; i < count; ++i) {
                const double below = zc[i] - top[i];
                zc[i] = power_of_e(below > -708 ? below : -708.0);
                sums[i] += zc[i];
            }
        }
        double sum = 0;
        for (int i = 0; i < count; ++i) sum += w[i] * (std::log(sums[i]) + (top[i] - own[i]));
        if (!DERIVATIVES) return sum;
        double *sofar = later;
        for (int i = 0; i < count; ++i) sums[i] = 1 / sums[i], sofar[i] = 0;
        for (int c = 0; c < K; ++c) {
            double *pc = probability + size_t(c) * shared.n + r, *zc = z + c * ROWS;
            double *g = gradient + size_t(c ? c - 1 : 0) * shared.n + r;
            const double factor = c ? SharedLoss::contrast(c - 1) : 0.0;
            for (int i = 0; i < count; ++i) {
                pc[i] = zc[i] * sums[i];
                const double off = w[i] * (pc[i] - (y[i] == c ? 1.0 : 0.0));
                if (c) g[i] = factor * (sofar[i] - c * off);
                sofar[i] += off;
            }
        }
        return sum;
    }

    // The objective and its slope in the coefficients; gradient and curvature are set on the way.
    double evaluate(const double *coef, double *out) {
        double sum = 0;
        for (int i = 0; i < s * m; ++i) out[i] = 0;
        each_block(training, [&](int r, int count) {
            scores(coef, r, count);
            sum += loss<true>(weights, r, count);
            for (int o = 0; o < m; ++o)
                dots(gradient + size_t(o) * shared.n + r, columns, s, r, count,
                     [&](int k, double x) { out[k * m + o] += x; });
        });
        for (int i = intercepts() * m; i < s * m; ++i) {
            sum += 0.5 * ridge[i / m] * coef[i] * coef[i];
            out[i] += ridge[i / m] * coef[i];
        }
        return sum;
    }

    // The step length; 0 where no step lowers the objective.
    double line_search(double decrease, int size) {
        double step = 1;
        for (int turn = 0; turn < 40; ++turn, step *= 0.5) {
            for (int i = 0; i < size; ++i) trial[i] = theta[i] - step * direction[i];
            const double found = evaluate(trial, trial_slope);
            if (found <= value - 1e-4 * step * decrease + 1e-14 * std::fabs(value)) {
                for (int i = 0; i < size; ++i) theta[i] = trial[i], slope[i] = trial_slope[i];
                value = found;
                return step;
            }
            if (stale) break;
        }
        return 0;
    }

    // Computes the rows of H from column `from` on.
    void set_hessian(int from) {
        std::memset(H + row(from * u) * blocks, 0, (row(s * u) - row(from * u)) * blocks * sizeof(double));
        each_block(training, [&](int r, int count) {
            double t[ROWS], factor[ROWS];
            if (shared.coupled()) {
                set_contrasts(r, count);
                for (int a = 0; a < m; ++a)
                    for (int b = 0; b <= a; ++b)
                        pair_weights(a, b, r, count, factor), add_hessian(from, a, b, r, count, factor, t);
            } else
                for (int b = 0; b < blocks; ++b)
                    add_hessian(from, b, b, r, count, curvature + size_t(b) * shared.n + r, t);
        });
        for (int k = larger(from, intercepts()); k < s; ++k)
            for (int i = k * u; i < (k + 1) * u; ++i)
                for (int b = 0; b < blocks; ++b) H[(row(i) + i) * blocks + b] += ridge[k];
    }

    // Adds sum_i factor_i x_ki x_ji for the pair of outputs (a, b), for all k from `from` on and j up to k.
    void add_hessian(int from, int a, int b, int r, int count, const double *factor, double *t) {
        for (int k = from; k < s; ++k) {
            const double *x = columns[k] + r;
            for (int i = 0; i < count; ++i) t[i] = factor[i] * x[i];
            if (!shared.coupled()) {
                double *to = H + row(k) * blocks + a;
                dots(t, columns, k + 1, r, count, [&](int j, double z) { to[j * blocks] += z; });
            } else {
                double *to = H + row(k * m + a), *other = H + row(k * m + b);
                dots(t, columns, k + 1, r, count, [&](int j, double z) {
                    to[j * m + b] += z;
                    if (a != b && j < k) other[j * m + a] += z;
                });
            }
        }
    }

    // Of every row: the mean and the mean square of each contrast under its probabilities.
    void set_contrasts(int r, int count) {
        double *mean = work, *square = work + m * ROWS, *sofar = work + 2 * m * ROWS;
        for (int i = 0; i < count; ++i) sofar[i] = probability[r + i];
        for (int o = 0; o < m; ++o) {
            const double *next = probability + size_t(o + 1) * shared.n + r, q = SharedLoss::contrast(o);
            for (int i = 0; i < count; ++i) {
                mean[o * ROWS + i] = q * (sofar[i] - (o + 1) * next[i]);
                square[o * ROWS + i] = q * q * (sofar[i] + (o + 1.0) * (o + 1.0) * next[i]);
                sofar[i] += next[i];
            }
        }
    }

    // The weighted covariance of contrasts a >= b: that of b is constant where that of a is not.
    void pair_weights(int a, int b, int r, int count, double *out) const {
        const double *first = work + a * ROWS, *second = work + b * ROWS, *square = work + (m + a) * ROWS;
        const double q = SharedLoss::contrast(a), *w = weights + r;
        for (int i = 0; i < count; ++i)
            out[i] = w[i] * (a == b ? square[i] - first[i] * first[i] : second[i] * (q - first[i]));
    }

    // Computes the rows of L from column `from` on; false where a pivot is lost to rounding and shall not be `damped`.
    bool set_factor(int from, bool damped) {
        const int B = blocks;
        for (int b = 0; b < B; ++b)
            for (int i = from * u; i < s * u; ++i) {
                double *Li = L + row(i) * B + b;
                const double *Hi = H + row(i) * B + b;
                const auto inner = [&](const double *Lj, int count) {
                    if (B == 1) return dot(Li, Lj, count);
                    double sum = 0;
                    for (int k = 0; k < count; ++k) sum += Li[k * B] * Lj[k * B];
                    return sum;
                };
                for (int j = 0; j < i; ++j) {
                    const double *Lj = L + row(j) * B + b;
                    Li[j * B] = (Hi[j * B] - inner(Lj, j)) / Lj[j * B];
                }
                double pivot = Hi[i * B] - inner(Li, i);
                if (!(pivot > 1e-13 * Hi[i * B]) || !(pivot > TINY)) {
                    if (!damped) return false;
                    pivot = larger(1e-8 * Hi[i * B], 1e-12);
                }
                Li[i * B] = std::sqrt(pivot);
            }
        factored = s;
        return true;
    }

    void refresh() {
        set_hessian(0);
        if (!set_factor(0, false)) set_factor(0, true);
        stale = false;
    }

    void extend() {
        const int from = factored;
        set_hessian(from);
        stale = shared.kind != GreedyLoss::squares;
        if (!set_factor(from, false)) refresh();
    }

    // direction = H^-1 slope, by L, for each block or output.
    void solve() {
        const int size = s * u, B = blocks;
        for (int o = 0; o < m / u; ++o) {
            const double *l = L + (o < B ? o : 0);
            double *x = solution;
            const auto place = [&](int i) { return (i / u) * m + o * u + i % u; };
            for (int i = 0; i < size; ++i) {
                const double *Li = l + row(i) * B;
                double sum = slope[place(i)];
                if (B == 1) sum -= dot(Li, x, i);
                else
                    for (int k = 0; k < i; ++k) sum -= Li[k * B] * x[k];
                x[i] = sum / Li[i * B];
            }
            for (int i = size - 1; i >= 0; --i) {
                const double *Li = l + row(i) * B, xi = x[i] /= Li[i * B];
                for (int k = 0; k < i; ++k) x[k] -= xi * Li[k * B];
            }
            for (int i = 0; i < size; ++i) direction[place(i)] = x[i];
        }
    }
};

template <class T> class GreedyOver final : public GreedyPaths {
    static constexpr int PANEL = UnitColumns<T>::panel_width;
    static constexpr double ROUNDING = sizeof(T) == 8 ? 1e-11 : 1e-5;  // of correlations, beside the largest possible
    struct Best {
        double score;
        int column;
    };

    UnitColumns<T> X;
    Array<double> y, weights, held, means, inverses;  // inverses: 1 / deviation of a column in a group of problems
    Array<double> ones;
    Array<int32_t> group;
    SharedLoss shared;
    int count;
    Array<GreedyProblem *> problems;
    Array<uint8_t> active;    // count x p
    Array<double *> columns;  // those that some problem uses
    int threads;

  public:
    GreedyOver(const GreedyMatrix<T> &matrix, const GreedyTask &task, int threads)
        : X(matrix, task.intercept, threads), y(size_t(task.targets) * X.n), weights(size_t(task.groups) * X.n),
          held(size_t(task.groups) * X.n), means(size_t(task.groups) * X.p), inverses(size_t(task.groups) * X.p),
          ones(X.n), group(task.count), shared{task.loss,
                                               X.n,
                                               task.classes,
                                               task.loss == GreedyLoss::multinomial ? task.classes - 1 : task.targets,
                                               task.width,
                                               task.intercept,
                                               y},
          count(task.count), problems(task.count), active(size_t(task.count) * X.p), columns(X.p), threads(threads) {
        std::memcpy(y, task.y, size_t(task.targets) * X.n * sizeof(double));
        std::memcpy(group, task.group, count * sizeof(int32_t));
        for (int i = 0; i < X.n; ++i) ones[i] = 1;
        for (int k = 0; k < task.groups; ++k) {
            set_shares(task.weights + size_t(k) * X.n, weights + size_t(k) * X.n);
            set_shares(task.held + size_t(k) * X.n, held + size_t(k) * X.n);
        }
        set_moments(task.groups);
        in_parallel(threads, count, [&](int k) {
            const size_t at = size_t(group[k]) * X.n;
            problems[k] = new GreedyProblem(shared, weights + at, held + at, task.l2[k], task.tols[k], ones);
            problems[k]->set_floor(task.separated);
        });
    }
    ~GreedyOver() {
        for (int k = 0; k < count; ++k) delete problems[k];
        for (int j = 0; j < X.p; ++j) std::free(columns[j]);
    }

    void read(double *values, double *losses) const override {
        for (int k = 0; k < count; ++k) values[k] = problems[k]->value, losses[k] = problems[k]->held_out_loss();
    }

    int advance(int32_t *entered) override {
        Array<int32_t> live(count);
        int going = 0;
        for (int k = 0; k < count; ++k) {
            entered[k] = -1;
            if (problems[k]->alive) live[going++] = k;
        }
        if (!going) return 0;
        choose(live, going, entered);
        for (int q = 0; q < going; ++q)
            if (const int j = entered[live[q]]; j >= 0 && !columns[j]) {
                columns[j] = static_cast<double *>(std::malloc(X.n * sizeof(double)));
                if (!columns[j]) throw std::bad_alloc();
                X.column(j, columns[j]);
            }
        int entering = 0;
        in_parallel(threads, going, [&](int q) {
            GreedyProblem &problem = *problems[live[q]];
            const int j = entered[live[q]];
            problem.alive = j >= 0;
            if (j < 0) return;
            const double inverse = inverses[size_t(group[live[q]]) * X.p + j];
            active[size_t(live[q]) * X.p + j] = 1;
            problem.enter(j, columns[j], 1 / (inverse * inverse));
            problem.refit();
            problem.alive = problem.value > problem.floor;
        });
        for (int q = 0; q < going; ++q) entering += entered[live[q]] >= 0;
        return entering;
    }

    int size(int problem) const override { return problems[problem]->s - shared.intercept; }

    void coefficients(int problem, double *coef, double *intercept) const override {
        problems[problem]->coefficients(X.scale, X.centre, coef, intercept);
    }

    void scales(double *out) const override { std::memcpy(out, X.scale, X.p * sizeof(double)); }

  private:
    void set_shares(const double *from, double *to) const {
        double sum = 0;
        for (int i = 0; i < X.n; ++i) sum += from[i];
        for (int i = 0; i < X.n; ++i) to[i] = sum > 0 ? from[i] / sum : 0.0;
    }

    // The mean and the deviation of every column in each group of problems, from the sums of x and of its square.
    void set_moments(int groups) {
        Array<const double *> vectors(groups);
        for (int k = 0; k < groups; ++k) vectors[k] = weights + size_t(k) * X.n;
        X.template products<false>(vectors, groups, threads, [&](int, int first, int width, const double *sums) {
            for (int k = 0; k < groups; ++k)
                for (int b = 0; b < width; ++b)
                    means[size_t(k) * X.p + first + b] = shared.intercept ? sums[k * PANEL + b] : 0.0;
        });
        X.template products<true>(vectors, groups, threads, [&](int, int first, int width, const double *sums) {
            for (int k = 0; k < groups; ++k)
                for (int b = 0; b < width; ++b) {
                    const size_t at = size_t(k) * X.p + first + b;
                    const double square = sums[k * PANEL + b], mean = means[at];
                    double variance = square - mean * mean;
                    if (!(variance > 1e-3 * square)) variance = exact_variance(first + b, vectors[k], mean);
                    inverses[at] = variance > 0 ? 1 / std::sqrt(variance) : 0.0;
                }
        });
    }

    // The variance of a column that is nearly constant on the samples with weights, exactly 0 where it is constant.
    double exact_variance(int j, const double *w, double mean) const {
        Array<double> x(X.n);
        X.column(j, x);
        double low = INFINITY, high = -INFINITY, sum = 0;
        for (int i = 0; i < X.n; ++i)
            if (w[i] > 0) {
                low = smaller(low, x[i]), high = larger(high, x[i]);
                sum += w[i] * (x[i] - mean) * (x[i] - mean);
            }
        return (shared.intercept ? low < high : low < 0 || high > 0) ? sum : 0.0;
    }

    // The column that correlates most with the gradient, for each problem that goes on; -1 where none does.
    void choose(const int32_t *live, int going, int32_t *entered) const {
        const int m = shared.outputs, pieces = X.pieces();
        Array<const double *> vectors(size_t(going) * m);
        Array<double> totals(size_t(going) * m);
        for (int q = 0; q < going; ++q)
            for (int o = 0; o < m; ++o) {
                const double *g = vectors[q * m + o] = problems[live[q]]->gradient + size_t(o) * X.n;
                for (int i = 0; i < X.n; ++i) totals[q * m + o] += g[i];
            }
        Array<Best> best(size_t(pieces) * going);
        for (int k = 0; k < pieces * going; ++k) best[k] = {0.0, -1};
        X.template products<false>(
            vectors, going * m, threads, [&](int piece, int first, int width, const double *sums) {
                for (int q = 0; q < going; ++q) {
                    const double *mean = means + size_t(group[live[q]]) * X.p + first;
                    const double *inverse = inverses + size_t(group[live[q]]) * X.p + first;
                    const uint8_t *in = active + size_t(live[q]) * X.p + first;
                    double score[PANEL] = {};
                    for (int o = 0; o < m; ++o) {
                        const double *sum = sums + size_t(q * m + o) * PANEL, all = totals[q * m + o];
                        for (int b = 0; b < width; ++b) {
                            const double c = (sum[b] - all * mean[b]) * inverse[b];
                            score[b] += c * c;
                        }
                    }
                    Best &top = best[size_t(piece) * going + q];
                    for (int b = 0; b < width; ++b)
                        if (score[b] > top.score && !in[b]) top = {score[b], first + b};
                }
            });
        for (int q = 0; q < going; ++q) {
            Best top{ROUNDING * ROUNDING * problems[live[q]]->largest_score(), -1};
            for (int piece = 0; piece < pieces; ++piece)
                if (best[size_t(piece) * going + q].score > top.score) top = best[size_t(piece) * going + q];
            entered[live[q]] = top.column;
        }
    }
};

}  // namespace
