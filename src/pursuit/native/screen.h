// Bounds of the products of all columns of a matrix with a vector, from an 8-bit copy of the matrix.
//
// Column a is scale (coarse + rest) with scale = max |a| / 127 and 8-bit integers `coarse`; the vector g is 2^e (p +
// rest of its own), with 16-bit integers p. Then <a, g> / (scale 2^e) is the integer <coarse, p>, to within
// error |p| + norm |rest of g|, where `error` and `norm` are the norms of the rest and of a / scale. A second code, of
// what the first leaves, times FINE, makes the error FINE times as small. docs/speed.md says the same with
// floating-point rounding, and why the answers are those of the plain product.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr double FINE = 254;  // half a unit of the first code is 127 units of the second
constexpr double U = 0x1p-52;

template <class T> class Screen : public Screening<T> {
    static constexpr int COLUMNS_PER_COPY = 32;  // columns that are copied together where the matrix has them strided
    static constexpr double MIN_NORMAL = sizeof(T) == 8 ? 0x1p-1022 : 0x1p-126;
    static constexpr double MAX_POWER = sizeof(T) == 8 ? 0x1p1023 : 0x1p127;  // of two

    const int width;          // entries of a code; after the last, zeros: no loop has a remainder
    const double max_square;  // upper limit of the squared norm of p, so that no product with a code leaves 32 bits
    Array<int8_t> coarse, fine;
    Array<double> error, fine_error;
    Array<T *> copies;  // of strided columns
    double smallest_scale = INFINITY, largest_norm = 0;
    bool usable = false;   // whether the bounds hold: for the sizes of the columns, and for sums of as many squares
    bool refined = false;  // whether there is a second code

  public:
    // A vector is unit (p + a rest), where the unit is a power of two. In units, the norm of p, and a bound of that of
    // the rest.
    struct Rounded {
        Array<int16_t> p;
        double unit = 0, length = 0, rest = 0;
        explicit Rounded(const Screen &screen) : p(screen.width) {}
    };

    const Dictionary<T> D;  // atoms are columns
    Array<double> scale, norm;

    Screen(const Dictionary<T> &D, int threads)
        : width(round_up(D.d, 64)), max_square((2147483647.0 / 127) * (2147483647.0 / 127) / D.d),
          coarse(size_t(D.n) * width), error(D.n), fine_error(D.n), copies(D.entry_stride != 1 ? D.n : 0), D(D),
          scale(D.n), norm(D.n) {
        in_pieces(threads, D.n, [&](int64_t start, int64_t stop) { make_code<false>(start, stop); });
        double largest_scale = 0;
        for (int64_t j = 0; j < D.n; ++j) {
            smallest_scale = smaller(smallest_scale, scale[j]);
            largest_scale = larger(largest_scale, scale[j]);
            largest_norm = larger(largest_norm, scale[j] * norm[j]);
        }
        usable = D.d < 1 << 20 && smallest_scale > 1e-280 && largest_scale < 1e280;
    }

    ~Screen() override {
        for (int j = 0; strided() && j < D.n; ++j) delete[] copies[j];
    }

    bool intervals(const double *g, const int64_t *which, int64_t count, bool is_signed, int threads, double *lower,
                   double *upper) override {
        Rounded rounded(*this);
        if (!round(g, rounded)) return false;
        if (which && !refined) {
            fine.allocate(size_t(D.n) * width);
            in_pieces(threads, D.n, [&](int64_t start, int64_t stop) { make_code<true>(start, stop); });
            refined = true;
        }
        in_pieces(threads, count,
                  [&](int64_t start, int64_t stop) { enclose(rounded, which, start, stop, is_signed, lower, upper); });
        return true;
    }

    // In float64.
    void products(const double *g, const int64_t *which, int64_t count, double *value, double *size) override {
        fetch(which, count);
        for (int64_t k = 0; k < count; ++k) {
            double sum = 0, absolute = 0;
            const T *a = column(which[k]);
#pragma omp simd reduction(+ : sum, absolute)
            for (int i = 0; i < D.d; ++i) {
                const double product = double(a[i]) * g[i];
                sum += product;
                absolute += std::fabs(product);
            }
            value[k] = sum, size[k] = absolute;
        }
    }

    // Strided columns are copied when they are first needed: they are needed again. Where memory ends in between, the
    // columns that were not filled are freed, so that a later call does not read them.
    void fetch(const int64_t *which, int64_t count) {
        if (!strided()) return;
        Array<int64_t> fresh(count);
        int64_t fresh_count = 0;
        try {
            for (int64_t k = 0; k < count; ++k)
                if (!copies[which[k]]) copies[which[k]] = new T[D.d], fresh[fresh_count++] = which[k];
        } catch (...) {
            for (int64_t k = 0; k < fresh_count; ++k) delete[] copies[fresh[k]], copies[fresh[k]] = nullptr;
            throw;
        }
        for (int i = 0; i < D.d && fresh_count > 0; ++i)  // by rows, in which neighbours are near
            for (int64_t k = 0; k < fresh_count; ++k) copies[fresh[k]][i] = D.atom(fresh[k])[i * D.entry_stride];
    }

    // The entries of a column that was fetched.
    const T *column(int64_t j) const { return strided() ? copies[j] : D.atom(j); }

    // work(start, stop) for pieces of `count` columns, on several threads.
    template <class Work> void in_pieces(int threads, int64_t count, Work work) const {
        const int64_t piece = ((1 << 19) / D.d / 64 + 1) * 64;
        in_parallel(threads, int((count + piece - 1) / piece),
                    [&](int k) { work(k * piece, smaller((k + 1) * piece, count)); });
    }

    // g in 16 bits, so that no sum of products leaves 32 bits; false if it is zero, not finite or out of range. The
    // rest includes the rounding of the plain product, whose number the intervals must contain.
    bool round(const double *g, Rounded &out) const {
        const double size = largest_magnitude(g, D.d);
        double sum = 0;
        for (int i = 0; i < D.d; ++i) sum += 0 * g[i];
        if (!(usable && sum == 0 && size > 1e-270 && size < 1e270)) return false;
        for (int exponent = std::ilogb(size) - 13;; ++exponent) {  // |g| / 2^exponent < 2^14
            const double inverse = std::ldexp(1.0, -exponent);
            double squares = 0, rest = 0;
#pragma omp simd reduction(+ : squares, rest)
            for (int i = 0; i < D.d; ++i) {
                const double exact = g[i] * inverse, near = nearest(exact);
                out.p[i] = int16_t(int32_t(near));
                squares += near * near;
                rest += (exact - near) * (exact - near);
            }
            if (squares >= max_square) continue;
            const double slack = 1 + (D.d + 8) * U;
            out.unit = 1 / inverse, out.length = std::sqrt(squares) * slack, out.rest = std::sqrt(rest) * slack + 1e-12;
            const double most = largest_norm * out.unit * (out.length + std::sqrt(double(D.d)));
            out.rest += (D.d + 32) * double(EPS<T>) * (out.length + out.rest);
            return smallest_scale * out.unit > 1e4 * D.d * MIN_NORMAL && most < 1e-2 * MAX_POWER;
        }
    }

    // The intervals of columns start to stop, of `which` if that is not null.
    void enclose(const Rounded &g, const int64_t *which, int64_t start, int64_t stop, bool is_signed, double *lower,
                 double *upper) const {
        constexpr int N = LANES<int16_t>, COLUMNS = 4;  // at a time
        const int8_t *const codes[] = {coarse, fine};
        for (int64_t k = start; k < stop; k += COLUMNS) {
            int64_t j[COLUMNS];
            double merits[COLUMNS] = {};
            for (int r = 0; r < COLUMNS; ++r) j[r] = smaller(k + r, stop - 1);
            for (int r = 0; r < COLUMNS && which; ++r) j[r] = which[j[r]];
            for (int pass = 0; pass < (which ? 2 : 1); ++pass) {
                Vec<int32_t> sums[COLUMNS][2] = {};
                for (int i = 0; i < width; i += 2 * N)
                    for (int r = 0; r < COLUMNS; ++r) {
                        const int8_t *row = codes[pass] + j[r] * width + i;
                        __builtin_prefetch(row + COLUMNS * width, 0, 2);
                        for (int v = 0; v < 2; ++v)
                            sums[r][v] = add_products(sums[r][v], widened(row + v * N), load(g.p + i + v * N));
                    }
                Vec<int32_t> both[COLUMNS];
                for (int r = 0; r < COLUMNS; ++r) both[r] = sums[r][0] + sums[r][1];
                // all four totals in a few instructions
                const auto lanes = std::make_integer_sequence<int, LANES<int32_t>>();
                both[0] = folded<1, int32_t>(both[0], both[1], lanes);
                both[2] = folded<1, int32_t>(both[2], both[3], lanes);
                const auto plus = [](auto x, auto y) { return x + y; };
                const Vec<int32_t, 16> total = lower_part<int32_t>(folded<2, int32_t>(both[0], both[2], lanes), plus);
                for (int r = 0; r < COLUMNS; ++r) merits[r] += total[r] / (pass == 0 ? 1 : FINE);
            }
            for (int r = 0; r < COLUMNS && k + r < stop; ++r) {
                const double merit = is_signed ? std::fabs(merits[r]) : -merits[r];
                const double radius = (which ? fine_error : error)[j[r]] * g.length + norm[j[r]] * g.rest + 1e-3;
                const double unit = scale[j[r]] * g.unit;
                lower[k + r] = (merit - radius) * unit;
                upper[k + r] = (merit + radius) * unit;
            }
        }
    }

  private:
    bool strided() const { return D.entry_stride != 1; }

    // The first or the second code of columns start to stop.
    template <bool SECOND> void make_code(int64_t start, int64_t stop) {
        each_column(start, stop, [&](int64_t j, const T *a) {
            if (!SECOND) scale[j] = double(largest_magnitude(a, D.d)) / 127;
            constexpr double factor = SECOND ? FINE : 1;
            const double inverse = 1 / scale[j];
            const int8_t *first = coarse + j * width;
            int8_t *code = (SECOND ? fine : coarse) + j * width;
            double squares = 0, all = 0;
#pragma omp simd reduction(+ : squares, all)
            for (int i = 0; i < D.d; ++i) {
                const double exact = double(a[i]) * inverse, rest = SECOND ? exact - first[i] : exact;
                const double near = nearest(factor * rest), left = rest - near * (1 / factor);
                code[i] = int8_t(int32_t(near));
                squares += left * left;
                all += exact * exact;
            }
            (SECOND ? fine_error : error)[j] = rounded_up(squares);
            if (!SECOND) norm[j] = rounded_up(all);
        });
    }

    double rounded_up(double squares) const {
        return std::sqrt(squares) * (1 + (D.d + 8) * U) + 512 * U * std::sqrt(double(D.d));
    }

    // work(j, entries of column j) for some columns; strided ones are copied, COLUMNS_PER_COPY of them by rows.
    template <class Work> void each_column(int64_t start, int64_t stop, Work work) const {
        if (!strided()) {
            for (int64_t j = start; j < stop; ++j) work(j, D.atom(j));
            return;
        }
        const size_t row = round_up(D.d, 16) + 16;  // begins at a cache line, each at another one of the cache
        Array<T> some(COLUMNS_PER_COPY * row);
        for (int64_t first = start; first < stop; first += COLUMNS_PER_COPY) {
            const int count = int(smaller(int64_t(COLUMNS_PER_COPY), stop - first));
            int i = 0;
            for (constexpr int N = LANES<T>; D.atom_stride == 1 && count == COLUMNS_PER_COPY && i + N <= D.d; i += N)
                for (int k = 0; k < COLUMNS_PER_COPY; k += N) {
                    Vec<T> block[N];
                    for (int r = 0; r < N; ++r) block[r] = load(D.atom(first + k) + (i + r) * D.entry_stride);
                    transpose<T>(block);
                    for (int r = 0; r < N; ++r) store(some + (k + r) * row + i, block[r]);
                }
            for (; i < D.d; ++i)
                for (int k = 0; k < count; ++k) some[k * row + i] = D.atom(first + k)[i * D.entry_stride];
            for (int k = 0; k < count; ++k) work(first + k, some + k * row);
        }
    }
};

}  // namespace
