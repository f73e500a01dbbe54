// The Lasso and the group Lasso of least squares, for one penalty after the other over one matrix: the minimum of
//
//     |y - X b|^2 / 2 + l2 |b|^2 / 2 + penalty sum_k w_k |b_k|.
//
// The columns of a block are orthogonal to one another, so that the minimum over one block is the root of a function of
// |b_k|. Single columns take Newton's steps besides: with a factor of A'A + l2, for the columns A in use, and the signs
// of their coefficients, the minimum is one solution away. With the residual r = y - X b and its products,
//
//     minimum >= t <r, y> - t^2 |r|^2 / 2,    t <= penalty / max_k |X_k'r| / w_k,    and with a ridge also
//     minimum >= <r, y> - |r|^2 / 2 - sum_k (|X_k'r| - penalty w_k)_+^2 / (2 l2).
//
// With the products of two earlier residuals, r = a r_1 + c r_2 + e gives |X_k'r| <= |a X_k'r_1 + c X_k'r_2| + |X_k||e|,
// so that only blocks for which this exceeds the penalty are multiplied again.
#pragma once
#include "growing_factor.h"
#include "kernels.h"
#include "simd.h"

namespace {

// <v, column k> for k < count, four columns at a time.
inline void products(const double *v, const double *columns, int64_t count, int n, double *out) {
    constexpr int N = LANES<double>;
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double *c = columns + k * n;
        Vec<double> sums[4] = {};
        int i = 0;
        for (; i + N <= n; i += N) {
            const Vec<double> each = load(v + i);
            for (int j = 0; j < 4; ++j) sums[j] += each * load(c + int64_t(j) * n + i);
        }
        for (int j = 0; j < 4; ++j) {
            out[k + j] = total<double>(sums[j]);
            for (int rest = i; rest < n; ++rest) out[k + j] += v[rest] * c[int64_t(j) * n + rest];
        }
    }
    for (; k < count; ++k) out[k] = dot(v, columns + k * n, n);
}

// Coefficients and the residual they leave.
struct Point {
    Array<double> b, r;
    Point(int64_t p, int n) : b(p), r(n) {}
    void take(const Point &other) {
        std::memcpy(b, other.b, b.size() * sizeof(double));
        std::memcpy(r, other.r, r.size() * sizeof(double));
    }
    void add_multiple(double factor, const Point &other) {
        add(b.data(), factor, other.b.data(), int(b.size()));
        add(r.data(), factor, other.r.data(), int(r.size()));
    }
};

class LassoOver : public LassoPath {
    static constexpr int MOST_FACTORED = 4000, STEPS = 20;  // columns of the factor; Newton's steps together
    static constexpr int DEPTH = 5, ROUNDS = 8;             // sweeps before an acceleration, and accelerations together
    const BlockColumns X;
    const int n;
    const int64_t p, count;
    const bool single;  // every block is a column
    Point now, last;    // the last is that of the penalty before
    Array<double> squares, sizes, slopes, work;
    struct Known {
        Array<double> r, slopes;
    } known[2];  // earlier residuals, and their products with all columns
    double largest_slope = 0, excess = 0;
    Array<int64_t> used;  // the blocks in use
    int64_t in_use = 0;
    double previous = HUGE_VAL, before_previous = HUGE_VAL;  // penalties
    double enough = 0;                                       // the decrease of a sweep that ends sweeping
    GrowingFactor factor;
    Array<int64_t> order;  // the columns of the factor
    Array<bool> in_factor;
    Array<double> gram, step, old_r, before;
    Objects<Point> history;

  public:
    explicit LassoOver(const BlockColumns &X)
        : X(X), n(X.rows), p(X.width), count(X.count), single(X.count == X.width), now(p, n), last(p, n), squares(p),
          sizes(count), slopes(count), work(larger(p, int64_t(n))), used(count), order(independent() + 1), in_factor(p),
          gram(FEW * (size_t(independent()) + 1)), step(larger(p, int64_t(n))), old_r(n), before(independent() + 1),
          history(DEPTH + 1) {
        std::memcpy(now.r, X.y, n * sizeof(double));
        for (Known &each : known) each.r.allocate(n), each.slopes.allocate(p);
        for (int64_t k = 0; k < count; ++k) {
            for (int64_t j = X.starts[k]; j < X.starts[k + 1]; ++j)
                squares[j] = dot(column(j), column(j), n), sizes[k] += squares[j];
            sizes[k] = std::sqrt(sizes[k]);
        }
        look(0);
    }

    void coefficients(double *out) const override { std::memcpy(out, now.b, p * sizeof(double)); }

    int minimise(double penalty, double tol, int most, double &value, double &gap) override {
        const double likely = previous < HUGE_VAL ? 2 * penalty - previous : penalty;  // the strong rule
        if (single) step_by_newton(penalty, 1);
        else extrapolate(penalty);
        before_previous = previous, previous = penalty;
        restore();
        in_use = 0;
        for (int64_t k = 0; k < count; ++k)
            if (!is_zero(k) || slopes[k] > likely * X.prices[k]) used[in_use++] = k;
        if (single) sweep(penalty, true), step_by_newton(penalty, 2);
        else sweep_until_enough(penalty);
        double best = HUGE_VAL;
        for (int turn = 0;; ++turn) {
            look(penalty);
            value = objective(penalty), gap = larger(value - lower(penalty), 0.0);
            const double share = tol * value / larger(gap, 1e-300);
            if (turn == 0) enough *= larger(1.0, smaller(0.3 * share, 30.0));
            if (gap <= tol * value || turn == most || (turn % 8 == 7 && !(gap < 0.9 * best))) return turn;
            if (turn % 8 == 0) best = gap;
            if (single) sweep(penalty, true);
            if (single && step_by_newton(penalty, STEPS) && turn % 4 < 2)
                continue;  // else sweeps, too: steps may stall
            enough *= larger(share, 0.1);
            sweep_until_enough(penalty);
        }
    }

  private:
    // How many columns are independent: with a ridge, all of them.
    int independent() const { return int(smaller(X.l2 > 0 ? p : smaller(p, int64_t(n)), int64_t(MOST_FACTORED))); }
    // The residual of the coefficients, without what rounding has left in it.
    void restore() {
        std::memcpy(now.r, X.y, n * sizeof(double));
        for (int64_t j = 0; j < p; ++j)
            if (now.b[j] != 0) add<double>(now.r, -now.b[j], column(j), n);
    }
    void ask_for_interrupt() const {
        const int32_t stop = 0;
        check_interrupt(&stop);
    }
    const double *column(int64_t j) const { return X.columns + j * n; }
    bool is_zero(int64_t k) const {
        for (int64_t j = X.starts[k]; j < X.starts[k + 1]; ++j)
            if (now.b[j] != 0) return false;
        return true;
    }
    double norm(int64_t k, const double *v) const {
        if (single) return std::fabs(v[k]);
        double sum = 0;
        for (int64_t j = X.starts[k]; j < X.starts[k + 1]; ++j) sum += v[j] * v[j];
        return std::sqrt(sum);
    }
    double inner(const double *u, const double *v) const { return dot(u, v, n); }

    double objective(double penalty) const {
        double sum = 0, square = 0;
        for (int64_t u = 0; u < in_use; ++u) {
            const double each = norm(used[u], now.b);
            sum += X.prices[used[u]] * each, square += each * each;
        }
        return 0.5 * inner(now.r, now.r) + penalty * sum + 0.5 * X.l2 * square;
    }

    double lower(double penalty) const {
        const double ry = inner(now.r, X.y), rr = inner(now.r, now.r);
        double t = largest_slope > penalty ? penalty / largest_slope : 1.0;
        if (ry < t * rr) t = larger(ry / rr, 0.0);
        const double scaled = t * ry - 0.5 * t * t * rr;
        return X.l2 > 0 ? larger(scaled, ry - 0.5 * rr - excess / (2 * X.l2)) : scaled;
    }

    // The slope of the loss along each block, |X_k'r|: exact where it exceeds the price, elsewhere a bound of it.
    void look(double penalty) {
        ask_for_interrupt();
        double a = 0, c = 0;
        const double rest = distance(a, c);
        for (int64_t j = 0; j < p; ++j) work[j] = a * known[0].slopes[j] + c * known[1].slopes[j];
        int64_t unknown = 0;
        for (int64_t k = 0; k < count; ++k) {
            slopes[k] = norm(k, work) + rest * sizes[k];
            unknown += slopes[k] > penalty * X.prices[k] && is_zero(k);
        }
        const bool all = unknown > count / 4;
        if (all) {
            std::memcpy(known[1].r, known[0].r, n * sizeof(double));
            std::memcpy(known[1].slopes, known[0].slopes, p * sizeof(double));
            std::memcpy(known[0].r, now.r, n * sizeof(double));
            products(now.r, X.columns, p, n, known[0].slopes);
            std::memcpy(work, known[0].slopes, p * sizeof(double));
        }
        in_use = 0, largest_slope = excess = 0;
        for (int64_t k = 0; k < count; ++k) {
            const int64_t first = X.starts[k];
            const bool zero = is_zero(k), wanted = !zero || slopes[k] > penalty * X.prices[k];
            if (wanted && !all) products(now.r, column(first), X.starts[k + 1] - first, n, work + first);
            if (wanted || all) slopes[k] = norm(k, work);
            const double beyond = larger(slopes[k] - penalty * X.prices[k], 0.0);
            largest_slope = larger(largest_slope, slopes[k] / X.prices[k]);
            excess += beyond * beyond;
            if (beyond > 0 || !zero) used[in_use++] = k;
        }
    }

    // min |r - a r_1 - c r_2|, with an allowance for rounding.
    double distance(double &a, double &c) {
        const double *u = known[0].r, *v = known[1].r;
        const double uu = inner(u, u), uv = inner(u, v), vv = inner(v, v), ur = inner(u, now.r), vr = inner(v, now.r);
        const double determinant = uu * vv - uv * uv;
        if (determinant > 1e-10 * uu * vv) a = (ur * vv - vr * uv) / determinant, c = (vr * uu - ur * uv) / determinant;
        else if (uu > 0) a = ur / uu;
        double square = 0;
        for (int i = 0; i < n; ++i) {
            const double left = now.r[i] - a * u[i] - c * v[i];
            square += left * left;
        }
        const double terms =
            std::sqrt(inner(now.r, now.r)) + std::fabs(a) * std::sqrt(uu) + std::fabs(c) * std::sqrt(vv);
        return std::sqrt(square) + n * EPS<double> * terms;
    }

    // The minimum over each block in use (or only those whose coefficients are 0) after the other; about twice the
    // decrease of the objective.
    double sweep(double penalty, bool only_zeros) {
        double worth = 0;
        for (int64_t u = 0; u < in_use; ++u) {
            if (u % 16 == 0) ask_for_interrupt();
            const int64_t k = used[u], first = X.starts[k], m = X.starts[k + 1] - first;
            if (only_zeros && !is_zero(k)) continue;
            double *b = now.b + first, length = 0, change = 0, *z = work;
            const double *e = squares + first, price = penalty * X.prices[k];
            products(now.r, column(first), m, n, z);
            for (int64_t a = 0; a < m; ++a) z[a] += e[a] * b[a], length += z[a] * z[a];
            length = std::sqrt(length);
            const double root = length > price ? length_of(z, e, m, price, length, norm(k, now.b)) : 0.0;
            for (int64_t a = 0; a < m; ++a) {
                const double next = root > 0 ? z[a] * root / ((e[a] + X.l2) * root + price) : 0.0;
                step[a] = next - b[a], b[a] = next;
                change += step[a] * step[a] * (e[a] + X.l2);
            }
            worth += change;
            if (change > 0)
                combine<double>(1.0, now.r, step, [&](int a) { return column(first + a); }, int(m), n, now.r);
        }
        return worth;
    }

    // The length t of the coefficients z_a / (h_a + price / t) of a block, h = e + l2: F(t) = sum_a (z_a / (h_a t +
    // price))^2 is 1 there. F^-1/2 is concave and increases, so that Newton's method for it gets there from the left.
    double length_of(const double *z, const double *e, int64_t m, double price, double length, double guess) const {
        double top = 0;
        for (int64_t a = 0; a < m; ++a) top = larger(top, e[a] + X.l2);
        double low = (length - price) / top, high = HUGE_VAL, t = larger(low, guess);
        if (m == 1 || !(top > 0)) return top > 0 ? low : 0.0;
        for (int turn = 0; turn < 100; ++turn) {
            double F = 0, slope = 0;
            for (int64_t a = 0; a < m; ++a) {
                const double h = e[a] + X.l2, under = 1 / (h * t + price), q = z[a] * under;
                F += q * q, slope += q * q * h * under;
            }
            (F > 1 ? low : high) = t;
            double next = t + (std::sqrt(F) - 1) * F / slope;
            if (!(next > low && next < high)) next = high < HUGE_VAL ? 0.5 * (low + high) : 2 * t;
            const bool done = std::fabs(next - t) <= 4 * EPS<double> * t;
            t = next;
            if (done) break;
        }
        return t;
    }

    // Sweeps until one is worth little. After each few, the combination of their results in which the residual changes
    // least is tried: Anderson's acceleration.
    void sweep_until_enough(double penalty) {
        while (history.size() <= DEPTH) history.add(p, n);
        for (int round = 0; round < ROUNDS; ++round) {
            history[0].take(now);
            for (int e = 1; e <= DEPTH; ++e) {
                const double worth = sweep(penalty, false);
                if (enough == 0) enough = 0.1 * worth;
                if (worth <= enough) return;
                history[e].take(now);
            }
            accelerate(penalty);
        }
    }

    void accelerate(double penalty) {
        double U[DEPTH][DEPTH], c[DEPTH], trace = 0, sum = 0;
        for (int e = 0; e < DEPTH; ++e) {
            const Point &from = history[e], &to = history[e + 1];
            for (int o = 0; o <= e; ++o) {
                const Point &other_from = history[o], &other_to = history[o + 1];
                double product = 0;
                for (int i = 0; i < n; ++i) product += (to.r[i] - from.r[i]) * (other_to.r[i] - other_from.r[i]);
                U[e][o] = U[o][e] = product;
            }
            c[e] = 1, trace += U[e][e];
        }
        for (int e = 0; e < DEPTH; ++e) U[e][e] += 1e-10 * trace;
        for (int e = 0; e < DEPTH; ++e)  // elimination: U is positive definite
            for (int o = e + 1; o < DEPTH; ++o) {
                const double f = U[o][e] / U[e][e];
                for (int k = e; k < DEPTH; ++k) U[o][k] -= f * U[e][k];
                c[o] -= f * c[e];
            }
        for (int e = DEPTH - 1; e >= 0; --e) {
            for (int o = e + 1; o < DEPTH; ++o) c[e] -= U[e][o] * c[o];
            sum += c[e] /= U[e][e];
        }
        const double value = objective(penalty);
        std::memset(now.b, 0, p * sizeof(double)), std::memset(now.r, 0, n * sizeof(double));
        for (int e = 0; e < DEPTH; ++e) now.add_multiple(c[e] / sum, history[e + 1]);
        if (!(objective(penalty) < value)) now.take(history[DEPTH]);
    }

    // The coefficients as they would be if they went on changing with the penalty as they did, if that is better. Those
    // that have just become 0 remain 0.
    void extrapolate(double penalty) {
        const double share = (previous - penalty) / (before_previous - previous), value = objective(penalty);
        std::memcpy(old_r, now.r, n * sizeof(double));
        std::memcpy(step, now.b, p * sizeof(double));
        if (share > 0 && before_previous < HUGE_VAL) {
            for (int i = 0; i < n; ++i) now.r[i] += share * (now.r[i] - last.r[i]);
            for (int64_t k = 0; k < count; ++k) {
                const bool zero = is_zero(k);
                for (int64_t j = X.starts[k]; j < X.starts[k + 1]; ++j) {
                    const double change = share * (step[j] - last.b[j]);
                    if (!zero) now.b[j] += change;
                    else if (change != 0) add<double>(now.r, change, column(j), n);
                }
            }
        }
        std::memcpy(last.b, step, p * sizeof(double));
        std::memcpy(last.r, old_r, n * sizeof(double));
        if (!(objective(penalty) < value)) now.take(last);
    }

    // Newton's steps for the columns in use with the signs of their coefficients; whether all of them took part.
    bool step_by_newton(double penalty, int steps) {
        int64_t entering[FEW];
        int few = 0;
        remove_zeros();
        for (int64_t u = 0; u < in_use; ++u) {
            if (const int64_t j = used[u]; now.b[j] != 0 && !in_factor[j]) entering[few++] = j;
            if (few == FEW || (few && u + 1 == in_use)) bring_in(entering, few), few = 0;
        }
        bool all = true;
        for (int64_t u = 0; u < in_use; ++u) all &= exchange(used[u], penalty);
        for (int turn = 0; turn < steps && factor.size; ++turn) {
            ask_for_interrupt();
            const int s = factor.size;
            const double value = objective(penalty);
            double t = 1;
            std::memcpy(old_r, now.r, n * sizeof(double));
            for (int i = 0; i < s; ++i) {
                const int64_t j = order[i];
                const double at = before[i] = now.b[j];
                step[i] = inner(column(j), now.r) - X.l2 * at - std::copysign(penalty * X.prices[j], at);
            }
            factor.solve(step);
            for (int i = 0; i < s; ++i)
                if (before[i] * (before[i] + t * step[i]) <= 0) t = -before[i] / step[i];
            move(1.0);  // to the minimum; coefficients that would change their signs end at 0
            if (!(objective(penalty) <= value)) {
                move(t < 1 ? t : 0.0);
                if (t == 1) return false;
            }
            if (t == 1) break;
            remove_zeros();
        }
        return all;
    }

    void move(double t) {
        for (int i = 0; i < factor.size; ++i) {
            const double next = before[i] + t * step[i], kept = before[i] * next;
            work[i] = (kept > 1e-15 * before[i] * before[i] ? next : 0.0) - before[i];
            now.b[order[i]] = before[i] + work[i];
        }
        std::memcpy(now.r, old_r, n * sizeof(double));
        combine<double>(1.0, now.r, work, [&](int i) { return column(order[i]); }, factor.size, n, now.r);
    }

    void remove_zeros() {
        for (int at = factor.size - 1; at >= 0; --at) {
            if (now.b[order[at]] != 0) continue;
            in_factor[order[at]] = false;
            factor.remove(at, work);
            std::memmove(order + at, order + at + 1, (factor.size - at) * sizeof(int64_t));
        }
    }

    // A column in use that is a combination X h of those of the factor takes the place of the first of them whose
    // coefficient becomes 0 as the prices of all fall; or leaves. Whether it is in the factor, or not in use, at last.
    bool exchange(int64_t j, double penalty) {
        for (int turn = 0; turn < 3 && X.l2 == 0 && now.b[j] != 0 && !in_factor[j]; ++turn) {
            const int s = factor.size;
            const double value = objective(penalty);
            double rate = std::copysign(X.prices[j], now.b[j]);
            for (int i = 0; i < s; ++i) step[i] = inner(column(order[i]), column(j));
            factor.solve(step);
            for (int i = 0; i < s; ++i) {
                before[i] = now.b[order[i]];
                rate -= std::copysign(X.prices[order[i]], before[i]) * step[i];
            }
            const double at = now.b[j], sign = rate < 0 ? 1.0 : -1.0;
            double t = at * sign < 0 ? std::fabs(at) : HUGE_VAL;
            for (int i = 0; i < s; ++i) {
                step[i] *= -sign;
                if (before[i] * step[i] < 0) t = smaller(t, -before[i] / step[i]);
            }
            if (t == HUGE_VAL) return false;
            std::memcpy(old_r, now.r, n * sizeof(double));
            now.b[j] = at * sign < 0 && t == std::fabs(at) ? 0.0 : at + t * sign;
            move(t), add<double>(now.r, at - now.b[j], column(j), n);
            if (!(objective(penalty) <= value * (1 + 1e-12))) {
                now.b[j] = at, move(0.0);
                return false;
            }
            remove_zeros();
            if (now.b[j] != 0) bring_in(&j, 1);
        }
        return now.b[j] == 0 || in_factor[j];
    }

    // A few columns enter the factor, but for those that depend on the others.
    void bring_in(const int64_t *entering, int few) {
        ask_for_interrupt();
        const int size = factor.size;
        few = smaller(few, independent() - size);
        if (few == 0) return;
        const double *added[FEW], *others[FEW];
        double found[FEW * FEW], *z[FEW];
        for (int a = 0; a < FEW; ++a)
            added[a] = column(entering[smaller(a, few - 1)]), z[a] = gram + a * int64_t(independent() + 1);
        for (int i = 0; i < size; i += FEW) {
            for (int c = 0; c < FEW; ++c) others[c] = column(order[smaller(i + c, size - 1)]);
            products(added, others, n, found);
            for (int a = 0; a < FEW; ++a)
                for (int c = 0; c < FEW && i + c < size; ++c) z[a][i + c] = found[FEW * a + c];
        }
        products(added, added, n, found);
        factor.reserve(size + few);
        factor.reduce(z);
        for (int a = 0; a < few; ++a) {
            const int64_t j = entering[a];
            for (int c = 0, at = size; c < a; ++c)
                if (in_factor[entering[c]]) z[a][at++] = found[FEW * a + c];
            order[factor.size] = j;
            in_factor[j] = factor.append(z[a], size, squares[j] + X.l2);
        }
    }
};

}  // namespace
