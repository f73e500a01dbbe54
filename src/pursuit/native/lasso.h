// The Lasso of one signal, min |y - Dx|^2 / 2 + penalty |x|_1, over all x or over x >= 0; with penalty 0 and x >= 0 it
// is non-negative least squares. An active-set method in full precision.
//
// An atom enters with the sign of its correlation. In the signed atoms the weights are non-negative, and the problem is
// to minimise x'Hx / 2 - g'x over x >= 0, with the slopes g = sign <a, r> - penalty: at the minimum, slopes of active
// atoms are 0 and no other atom, with either sign, has a positive slope.
//
// A turn is given the correlations of all atoms with the residual. The few atoms of the largest slopes become members,
// beside the active ones. First all of them enter together that have positive weights at the minimum over the members
// where active atoms may have any sign: nearly always, that is the minimum over all members. The method of Lawson and
// Hanson goes on from there to that minimum. Both work on the inverse of the Gram matrix of the active atoms, which
// changes by a product of two vectors as an atom enters or leaves, and by a sum of such products where several enter.
// Slopes of active atoms that are not 0 at the beginning of a turn are rounding errors, which its first step corrects.
//
// An atom that depends on the active ones, a = sum_i beta_i a_i, lowers |x|_1 and leaves the residual as it is where it
// takes the place of its combination: until the first of the active weights is 0, and that atom leaves.
#pragma once
#include "pursuit.h"

namespace {

template <class T> class Lasso {
    static constexpr int N = LANES<T>, BLOCK = 4 * N, MOST_NEW = 8, WAYS = larger(1, MOST_NEW / N), MAX_CORRECTIONS = 4;
    static constexpr int MAX_COMPARED = 64;
    static constexpr T MAX_INVERSE = 1e4;  // of its diagonal, for atoms of norm 1

  public:
    const int d, n, room, stride;
    const bool positive;
    int s = 0;  // active atoms: the first members
    bool done = false;
    Array<int32_t> atoms;
    Array<T> signed_x;  // the weights of the atoms themselves
    Array<T> residual;

    Lasso(const Dictionary<T> &D, const Tile<T> &tile, Method method)
        : d(D.d), n(D.n), room(tile.width + MOST_NEW), stride(round_up(room, N) | N),
          positive(method == Method::positive_lasso), atoms(room), signed_x(stride), residual(d), D(D), tile(tile),
          noise(T(4 * std::sqrt(T(d)) * EPS<T>)), barred(room), x(stride), g(stride), z(stride), h(stride), image(stride), rest(stride), norms(room),
          sign(room), candidate_norms(n), key(n + 64), H(size_t(room) * stride), inverse(size_t(room) * stride),
          explained(size_t(MOST_NEW) * stride), added(size_t(MOST_NEW) * stride) {}

    void begin(int64_t number, const T *all_norms) {
        y = tile.y + number * d;
        w = tile.weights ? tile.weights + number * d : nullptr;
        penalty = tile.penalties[number];
        length = std::sqrt(inner<T>(w, y, y, d));
        s = members = turns = corrections = 0;
        ill = false;
        done = length == 0;
        std::memcpy(candidate_norms, all_norms, n * sizeof(T));
        std::memcpy(residual, y, d * sizeof(T));
    }

    // One turn, from the correlations c at the present weights; false at the minimum.
    bool turn(const T *c) {
        const T floor = noise * absolute_sum();
        bool settled = true;
        for (int i = 0; i < s; ++i) {
            g[i] = sign[i] * c[atoms[i]] - penalty;
            settled &= std::fabs(g[i]) <= floor * norms[i];
        }
        invite(c, floor);
        if (members == s && (settled || corrections++ == MAX_CORRECTIONS)) return false;
        if (turns++ == 64 + 2 * tile.width) return false;
        if (ill) invert();
        const bool moved = minimise(floor) || !settled;
        for (int i = s; i < members; ++i)
            if (moved) candidate_norms[atoms[i]] = norms[i];  // otherwise they are not tried again
        for (int i = 0; i < s; ++i) signed_x[i] = sign[i] * x[i];
        members = s;
        return moved;
    }

    void find_residual() {
        combine<T>(1, y, signed_x, [&](int i) { return D.atom(atoms[i]); }, s, d, residual);
    }

    // The code, atoms in increasing order.
    void finish(int64_t number) {
        for (int i = 0; i < s; ++i) {
            int64_t place = number * tile.width;
            for (int k = 0; k < s; ++k) place += atoms[k] < atoms[i];
            tile.atoms[place] = atoms[i];
            tile.x[place] = signed_x[i];
        }
        tile.counts[number] = s;
    }

  private:
    const Dictionary<T> &D;
    const Tile<T> &tile;
    const T noise;  // rounding of a correlation relative to the norms of its factors
    const T *y = nullptr, *w = nullptr;
    T penalty = 0, length = 0;
    int members = 0, turns = 0, corrections = 0;  // corrections: turns without new members
    bool ill = false;  // whether the inverse is so large that its rounding errors count
    // of the members: which may not enter any more in this turn; weights, slopes, the next step, three vectors to work with,
    // norms and signs
    Array<bool> barred;
    Array<T> x, g, z, h, image, rest, norms, sign;
    Array<T> candidate_norms;  // infinite for members, and for those that are not tried again
    Array<T> key;              // slopes of the candidates, where they are positive beyond rounding
    Array<T> H, inverse;       // the Gram matrix of the members, and the inverse of that of the active ones
    Array<T> explained, added; // of new members: the combinations of active atoms nearest to them, new rows of the inverse
    T pivots[MOST_NEW][MOST_NEW];

    T *gram(int i) const { return H + size_t(i) * stride; }
    T *inverse_row(int i) const { return inverse + size_t(i) * stride; }

    T absolute_sum() const {
        T sum = length;
        for (int i = 0; i < s; ++i) sum += x[i] * norms[i];
        return sum;
    }

    // The atoms of the largest slopes beyond rounding become members.
    void invite(const T *c, T floor) {
        const T *const f = candidate_norms;
        T *const slopes = key, limit = penalty;
        if (positive) {
#pragma omp simd
            for (int j = 0; j < n; ++j) slopes[j] = c[j] - limit > floor * f[j] ? c[j] - limit : T(0);
        } else {
#pragma omp simd
            for (int j = 0; j < n; ++j) {
                const T slope = std::fabs(c[j]) - limit;
                slopes[j] = slope > floor * f[j] ? slope : T(0);
            }
        }
        find_steepest();
        for (int i = s; i < members; ++i) {
            const int j = atoms[i];
            sign[i] = c[j] < 0 ? T(-1) : T(1), g[i] = slopes[j], x[i] = 0, norms[i] = f[j], barred[i] = false;
            const T *const all = D.gram ? D.gram_row(j) : nullptr, *const signs = sign, flip = sign[i];
            const int32_t *const which = atoms;
            T *const row = gram(i), *column = H + i;
            for (int k = 0; k <= i; ++k, column += stride) {
                const T product = all ? all[which[k]] : inner<T>(w, D.atom(j), D.atom(which[k]), d);
                *column = row[k] = flip * signs[k] * product;
            }
        }
        for (int i = s; i < members; ++i) candidate_norms[atoms[i]] = T(INFINITY);
    }

    // The atoms of the MOST_NEW largest slopes, sorted, become members: each takes the place that is the number of larger
    // slopes, since a sort by comparisons has branches that processors cannot predict. Where more than MAX_COMPARED
    // slopes may be among them, the first of those are compared.
    void find_steepest() {
        using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;  // which order slopes, as none is negative
        const T *const slopes = key;
        Vec<T> tops[WAYS] = {};  // at least MOST_NEW slopes are as large as the least of these
        for (int j = 0; j < n; j += N) tops[j / N % WAYS] = larger(tops[j / N % WAYS], load(slopes + j));
        for (int way = 1; way < WAYS; ++way) tops[0] = smaller(tops[0], tops[way]);
        const T cut = reduced<T>(tops[0], [](auto a, auto b) { return smaller(a, b); });
        const Vec<Bits> low = (Vec<Bits>)splat(cut * (1 - EPS<T>));
        Bits order[MAX_COMPARED] = {};  // slopes, in whose last digits their numbers make them distinct
        int32_t steep[MAX_COMPARED], sorted[MAX_COMPARED];
        int count = 0;
        for (int first = 0; first < n; first += 64) {
            uint64_t some = 0;
            for (int k = 0; k < 64; k += N) some |= bits_above((Vec<Bits>)load(slopes + first + k), low) << k;
            for (; some && count < MAX_COMPARED; some &= some - 1, ++count) {
                steep[count] = first + __builtin_ctzll(some);
                std::memcpy(order + count, slopes + steep[count], sizeof(T));
                order[count] = (order[count] | (MAX_COMPARED - 1)) - count;
            }
        }
        for (int e = 0; e < count; ++e) {
            int place = 0;
            for (int k = 0; k < count; k += N) place += __builtin_popcountll(bits_above(load(order + k), splat(order[e])));
            sorted[place] = steep[e];
        }
        members = s + smaller(count, MOST_NEW);
        std::memcpy(atoms + s, sorted, (members - s) * sizeof(int32_t));
    }

    // out = sum_i factors_i rows_i of a symmetric matrix, for its first `count` columns; a few more are written.
    void multiply(const T *matrix, const T *factors, int terms, int count, T *out) const {
        int k = 0;
        for (; k + BLOCK <= count; k += BLOCK) {
            Vec<T> sums[4] = {};
            for (int i = 0; i < terms; ++i) {
                const T *row = matrix + size_t(i) * stride + k;
                const Vec<T> factor = splat(factors[i]);
                for (int v = 0; v < 4; ++v) sums[v] += factor * load(row + v * N);
            }
            for (int v = 0; v < 4; ++v) store(out + k + v * N, sums[v]);
        }
        for (; k < count; k += N) {
            Vec<T> sum{};
            for (int i = 0; i < terms; ++i) sum += splat(factors[i]) * load(matrix + size_t(i) * stride + k);
            store(out + k, sum);
        }
    }

    // Adds scale v v' to the inverse, for the active atoms; a few more columns are written.
    void add_square(T scale, const T *v) {
        for (int i = 0; i < s; ++i) {
            const Vec<T> factor = splat(scale * v[i]);
            T *row = inverse_row(i);
            for (int k = 0; k < s; k += N) store(row + k, load(row + k) + factor * load(v + k));
        }
    }

    // The method of Lawson and Hanson over the members; whether an atom entered.
    bool minimise(T floor) {
        bool moved = false;
        int first = 0;  // the active atoms before this one have slope 0
        const int fresh = members - s;  // more than MOST_NEW where `invert` has dropped dependent atoms: one by one, then
        const bool together = !ill && fresh > 0 && fresh <= MOST_NEW && enter_together(floor);
        int entered = together ? atoms[s - 1] : -1;  // the last atom that entered
        for (int turn = 0, most = 3 * members + 9; turn < most; ++turn) {
            if (ill) solve(g, z);
            else multiply(inverse_row(first), g + first, s - first, s, z);
            T step = 1;
            for (int i = 0; i < s; ++i)
                if (!(x[i] + z[i] > 0) && !(x[i] > -step * z[i])) step = x[i] > 0 ? -x[i] / z[i] : 0;
            if (step > 0) {
                moved |= entered >= 0;
                const int from = ill ? 0 : s / N * N;  // otherwise the new slopes of active atoms are known
                multiply(H + from, z, s, members - from, h + from);
                for (int i = 0; i < s; ++i) g[i] = ill ? g[i] - step * h[i] : g[i] * (1 - step);
                for (int i = s; i < members; ++i) g[i] -= step * h[i];
            }
            if (step < 1) {
                leave(step, entered);
                if (ill) invert();
                first = 0;
                continue;
            }
            add<T>(x, 1, z, s);
            first = s;
            const int found = steepest(floor);
            if (found < 0) break;
            const int j = atoms[found];
            if (enter(found)) entered = j;
            else if (first = 0, replace(found)) entered = j;
            else barred[found] = true;
        }
        return moved;
    }

    // A step that ends where the first weights are 0: their atoms leave.
    void leave(T step, int &entered) {
        for (int i = s - 1; i >= 0; --i) {
            const bool leaves = !(x[i] + z[i] > 0) && !(x[i] > -step * z[i] * (1 + 4 * EPS<T>));
            x[i] = leaves ? 0 : x[i] + step * z[i];
            if (!leaves) continue;
            if (step == 0 && atoms[i] == entered) barred[i] = true, entered = -1;  // it would come back for ever
            drop(i);
        }
    }

    // The member from place s on with the largest slope relative to its norm, beyond rounding; -1 if there is none.
    int steepest(T floor) const {
        int found = -1;
        T most = floor;
        for (int i = s; i < members; ++i)
            if (!barred[i] && g[i] > most * norms[i]) most = g[i] / norms[i], found = i;
        return found;
    }

    // out = H^-1 v for the active atoms, by two steps of iterative refinement if needed; then `rest` = v - H out.
    void solve(const T *v, T *out) const {
        multiply(inverse, v, s, s, out);
        for (int k = 0; k < s; ++k) rest[k] = 0;
        for (int turn = 0; turn < 3 && ill; ++turn) {
            multiply(H, out, s, s, image);
            for (int k = 0; k < s; ++k) rest[k] = v[k] - image[k];
            if (turn == 2) return;
            multiply(inverse, rest, s, s, image);
            add<T>(out, 1, image, s);
        }
    }

    // The combination h of the active atoms that is nearest to member i; the squared distance, 0 if that is rounding.
    T distance_square(int i) const {
        solve(gram(i), h);
        T sum = norms[i], square = gram(i)[i];
        for (int k = 0; k < s; ++k) sum += std::fabs(h[k]) * norms[k], square -= h[k] * (gram(i)[k] + rest[k]);
        return square > 4 * (s + 2) * EPS<T> * sum * sum ? square : T(0);
    }

    // The members that `choose` names become active together, in one pass over the inverse; whether there are any.
    bool enter_together(T floor) {
        T *const from = inverse, *const products = explained, *const rows = added;
        const T *const factors = gram(s);
        const size_t step = stride;
        const int before = s;
        for (int k = 0; k < before; k += N) {
            Vec<T> sums[MOST_NEW] = {};
            for (int i = 0; i < before; ++i) {
                const Vec<T> row = load(from + i * step + k);
                for (int e = 0; e < MOST_NEW; ++e) sums[e] += splat(factors[e * step + i]) * row;
            }
            for (int e = 0; e < MOST_NEW; ++e) store(products + e * step + k, sums[e]);
        }
        bool in[MOST_NEW] = {};
        if (!choose(floor, in)) return false;
        for (int k = 0; k < before; k += N) {
            Vec<T> parts[MOST_NEW];
            for (int e = 0; e < MOST_NEW; ++e) parts[e] = load(products + e * step + k);
            for (int e = 0; e < MOST_NEW; ++e) {
                Vec<T> sum{};
                for (int f = 0; f < MOST_NEW; ++f) sum -= splat(pivots[e][f]) * parts[f];
                store(rows + e * step + k, sum);
            }
        }
        for (int k = 0; k < before; k += N) {
            Vec<T> parts[MOST_NEW];
            for (int e = 0; e < MOST_NEW; ++e) parts[e] = load(products + e * step + k);
            for (int i = 0; i < before; ++i) {
                Vec<T> sum = load(from + i * step + k);
                for (int e = 0; e < MOST_NEW; ++e) sum -= splat(rows[e * step + i]) * parts[e];
                store(from + i * step + k, sum);
            }
        }
        for (int e = 0; e < MOST_NEW; ++e) {
            if (!in[e]) continue;
            exchange(before + e, s);
            T *const row = inverse_row(s);
            std::memcpy(row, rows + e * step, before * sizeof(T));
            for (int f = 0, k = before; f <= e; ++f)
                if (in[f]) row[k++] = pivots[e][f];
            for (int k = 0; k < s; ++k) inverse_row(k)[s] = row[k];
            ++s;
        }
        find_ill();
        return true;
    }

    // The members that have positive weights at the minimum over them and the active atoms, the active ones of any sign:
    // by principal pivots on the Gram matrix of the new members less the part that active atoms explain. Leaves its
    // inverse for the chosen members in `pivots`, and 0 elsewhere. Whether there are any; nearly dependent ones are left out.
    bool choose(T floor, bool *in) {
        const int fresh = members - s;
        T q[MOST_NEW];       // of members that are out, minus the slopes; of those that are in, the weights
        T margin[MOST_NEW];  // of slopes over rounding errors; infinite for members that may not enter any more
        for (int a = 0; a < fresh; ++a) {
            q[a] = -g[s + a], margin[a] = floor * norms[s + a];
            for (int b = 0; b <= a; ++b)
                pivots[a][b] = pivots[b][a] = gram(s + a)[s + b] - dot<T>(gram(s + a), explained + b * size_t(stride), s);
        }
        int count = 0;
        for (;;) {
            int p = -1;
            T least = 0;
            for (int a = 0; a < fresh; ++a) {
                const T value = in[a] && q[a] < 0 ? -T(INFINITY) : q[a] + margin[a];
                p = value < least ? a : p, least = smaller(value, least);
            }
            if (p < 0) break;
            const T inverse = 1 / pivots[p][p], size = norms[s + p];
            const bool may_enter = inverse > 0 && inverse * size * size < MAX_INVERSE && s + count < tile.width;
            margin[p] = !in[p] && may_enter ? T(0) : T(INFINITY);
            if (!in[p] && !may_enter) continue;
            in[p] = !in[p];
            count += in[p] ? 1 : -1;
            const T value = q[p];
            for (int a = 0; a < fresh; ++a) {
                if (a == p) continue;
                const T factor = pivots[a][p] * inverse;
                q[a] -= factor * value;
                for (int b = 0; b < MOST_NEW; ++b) pivots[a][b] -= factor * pivots[p][b];
                pivots[a][p] = factor;
            }
            for (int b = 0; b < MOST_NEW; ++b) pivots[p][b] *= -inverse;
            pivots[p][p] = inverse;
            q[p] = -value * inverse;
        }
        for (int a = 0; a < MOST_NEW; ++a)
            for (int b = 0; b < MOST_NEW; ++b)
                if (!(in[a] && in[b])) pivots[a][b] = 0;
        return count > 0;
    }

    // Member i becomes active; false if it is dependent on the active ones.
    bool enter(int i) {
        const T square = distance_square(i);
        if (square == 0 || s == tile.width) return false;
        exchange(i, s);
        for (int k = 0; k <= s; ++k) inverse_row(s)[k] = inverse_row(k)[s] = 0;
        h[s++] = -1;
        add_square(1 / square, h);
        find_ill();
        return true;
    }

    void find_ill() {
        for (int k = 0; k < s; ++k) ill |= !(inverse_row(k)[k] * norms[k] * norms[k] < MAX_INVERSE);
    }

    // Member i, which depends on the active atoms, takes the place of as much of its combination as it can; the atom
    // whose weight becomes 0 leaves. False if there is no such atom.
    bool replace(int i) {
        do {
            int first = -1;
            T share = 0;
            distance_square(i);
            for (int k = 0; k < s; ++k)
                if (h[k] > 64 * EPS<T> * norms[i] / norms[k] && (first < 0 || x[k] < share * h[k]))
                    share = x[k] / h[k], first = k;
            if (first < 0) {
                remove_weight(i);
                return false;
            }
            for (int k = 0; k < s; ++k) {
                z[k] = -share * h[k];
                x[k] = k == first ? 0 : larger(x[k] + z[k], T(0));
            }
            multiply(H, z, s, members, h);
            for (int k = 0; k < members; ++k) g[k] -= h[k] + share * gram(i)[k];
            x[i] += share;
            drop(first);
            if (ill) invert();
        } while (!enter(i));
        return true;
    }

    void remove_weight(int i) {
        for (int k = 0; k < members; ++k) g[k] += x[i] * gram(i)[k];
        x[i] = 0;
    }

    // Active atom i leaves.
    void drop(int i) {
        const T pivot = inverse_row(i)[i];
        std::memcpy(h, inverse_row(i), s * sizeof(T));
        add_square(-1 / pivot, h);
        exchange(i, --s);
    }

    void exchange(int i, int k) {
        if (i == k) return;
        const auto swap = [](auto &p, auto &q) { const auto value = p; p = q; q = value; };
        swap(atoms[i], atoms[k]), swap(barred[i], barred[k]);
        T *vectors[] = {x, g, z, norms, sign};
        for (T *v : vectors) swap(v[i], v[k]);
        for (int t = 0; t < members; ++t) swap(gram(i)[t], gram(k)[t]);
        for (int t = 0; t < members; ++t) swap(gram(t)[i], gram(t)[k]);
        for (int t = 0; t <= s && i < k; ++t) swap(inverse_row(i)[t], inverse_row(k)[t]);  // otherwise both are inactive
        for (int t = 0; t <= s && i < k; ++t) swap(inverse_row(t)[i], inverse_row(t)[k]);
    }

    // The inverse anew, without the rounding errors of atoms that left.
    void invert() {
        const int before = s;
        s = 0, ill = false;
        for (int i = 0; i < before; ++i) enter(i);
        for (int i = s; i < before; ++i) remove_weight(i);  // of atoms that are dependent now
    }
};

// The signals of one tile over a shared Gram matrix, one after the other; `products` as in `careful`.
template <class T> void lasso(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *products) {
    Lasso<T> P(D, tile, method);
    Array<T> c(D.n);
    int turns = 0;
    for (int64_t number = 0; number < tile.count; ++number) {
        if (tile.counts[number] != UNSOLVED) continue;
        P.begin(number, D.norms);
        for (const T *present = products; !P.done && P.turn(present); present = c) {
            if (turns++ % 16 == 0) check_interrupt(tile.stop);
            combine<T>(1, products, P.signed_x, [&](int i) { return D.gram_row(P.atoms[i]); }, P.s, D.n, c);
        }
        P.finish(number);
        products += D.n;
    }
}

// The same from the residuals, all signals of a tile in step: see direct.h.
template <class T> class DirectLasso final : public DirectPursuits<T> {
    const Dictionary<T> D;
    const Tile<T> tile;
    int64_t signals = 0;
    Array<Lasso<T> *> problems;
    Array<int64_t> numbers;

  public:
    DirectLasso(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t norms_stride)
        : D(D), tile(tile), problems(tile.count), numbers(tile.count) {
        for (int64_t number = 0; number < tile.count; ++number) {
            if (tile.counts[number] != UNSOLVED) continue;
            Lasso<T> &P = *(problems[signals] = new Lasso<T>(this->D, this->tile, method));
            numbers[signals++] = number;
            P.begin(number, norms + number * norms_stride);
            if (P.done) P.finish(number);
        }
    }
    void destroy() override {
        for (int64_t p = 0; p < signals; ++p) delete problems[p];
        delete this;
    }
    int64_t vectors(T *out) override {
        T *to = out;
        for (int64_t p = 0; p < signals; ++p) {
            const Lasso<T> &P = *problems[p];
            if (P.done) continue;
            const T *w = tile.weights ? tile.weights + numbers[p] * D.d : nullptr;
            for (int i = 0; i < D.d; ++i) to[i] = w ? w[i] * P.residual[i] : T(P.residual[i]);
            to += D.d;
        }
        return (to - out) / D.d;
    }
    void advance(T *products) override {
        for (int64_t p = 0; p < signals; ++p) {
            Lasso<T> &P = *problems[p];
            if (P.done) continue;
            P.done = !P.turn(products);
            products += D.n;
            if (P.done) P.finish(numbers[p]);
            else P.find_residual();
        }
    }
};

}  // namespace
