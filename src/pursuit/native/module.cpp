// The Python module: arrays in, kernels of the level that this processor has, the interpreter's lock released.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>
#include "kernels.h"
#include "processor.h"

namespace nb = nanobind;
using namespace nb::literals;

#if defined(__x86_64__)
namespace v2 { extern const Levels level; }
namespace v3 { extern const Levels level; }
namespace v4 { extern const Levels level; }
static const Levels &choose_level() {
    const char *most = std::getenv("PURSUIT_LEVEL");  // v2 or v3 keeps to an older level, for tests
    int level = processor_level();
    if (level < 2) throw std::runtime_error("this processor has no SSE4.2, which the kernels of pursuit need.");
    if (most && most[0] == 'v' && most[1] >= '2') level = std::min(level, most[1] - '0');
    return level >= 4 ? v4::level : level == 3 ? v3::level : v2::level;
}
#else
namespace generic { extern const Levels level; }
static const Levels &choose_level() { return generic::level; }
#endif

static const Levels &levels() { static const Levels &chosen = choose_level(); return chosen; }
template <class T> const Level<T> &kernels() {
    if constexpr (sizeof(T) == 8) return levels().float64;
    else return levels().float32;
}

template <class T, int N> using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T> using Strided = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

static void require(bool condition, const char *what) {
    if (!condition) throw std::invalid_argument(what);
}

// Arrays of Python, and the plain structures that kernels read; the arrays live as long as these do.
template <class T> struct Atoms {
    Strided<T> atoms;
    In<T, 1> norms;
    std::optional<In<T, 2>> gram;

    Atoms(Strided<T> atoms, In<T, 1> norms, std::optional<In<T, 2>> gram) : atoms(atoms), norms(norms), gram(gram) {
        const size_t n = atoms.shape(0);
        require(norms.shape(0) == n, "norms do not fit the atoms");
        require(!gram || (gram->shape(0) == n && gram->shape(1) == n), "gram does not fit the atoms");
        require(std::max(n, atoms.shape(1)) < size_t(std::numeric_limits<int>::max()), "too many atoms");
    }
    Dictionary<T> plain() const {
        return {int(atoms.shape(1)), int(atoms.shape(0)), atoms.data(), atoms.stride(0), atoms.stride(1),
                norms.data(), gram ? gram->data() : nullptr};
    }
};

template <class T> struct Signals {
    In<T, 2> y;
    std::optional<In<T, 2>> weights;
    In<int64_t, 1> limits;
    In<T, 1> tols;
    Out<int32_t, 2> atoms;
    Out<T, 2> x;
    Out<int64_t, 1> counts;

    Signals(In<T, 2> y, std::optional<In<T, 2>> weights, In<int64_t, 1> limits, In<T, 1> tols, Out<int32_t, 2> atoms,
            Out<T, 2> x, Out<int64_t, 1> counts)
        : y(y), weights(weights), limits(limits), tols(tols), atoms(atoms), x(x), counts(counts) {
        const size_t count = y.shape(0);
        require(!weights || (weights->shape(0) == count && weights->shape(1) == y.shape(1)), "weights do not fit y");
        require(limits.shape(0) == count && tols.shape(0) == count && counts.shape(0) == count, "limits do not fit y");
        require(atoms.shape(0) == count && x.shape(0) == count && x.shape(1) == atoms.shape(1), "codes do not fit y");
        for (size_t i = 0; i < count; ++i)
            require(limits.data()[i] >= 0 && limits.data()[i] <= int64_t(x.shape(1)), "codes have no room for the limits");
    }
    Tile<T> plain() const {
        return {int64_t(y.shape(0)), int(x.shape(1)), y.data(), weights ? weights->data() : nullptr, limits.data(),
                tols.data(), atoms.data(), x.data(), counts.data()};
    }
    int64_t unsolved() const { return std::count(counts.data(), counts.data() + counts.shape(0), UNSOLVED); }
    void check(const Atoms<T> &D, bool contiguous, bool gram) const {
        require(y.shape(1) == D.atoms.shape(1), "signals do not fit the atoms");
        require(!contiguous || D.atoms.stride(1) == 1, "atoms must be contiguous");
        require(!gram || D.gram, "a Gram matrix is needed");
    }
};

template <class T> class FastKernel {
    Atoms<T> atoms;
    std::unique_ptr<void, void (*)(void *)> tables;

  public:
    FastKernel(const Atoms<T> &atoms, Method method, Search search) : atoms(atoms), tables(nullptr, kernels<T>().fast.destroy) {
        require(atoms.gram && atoms.atoms.stride(1) == 1, "a Gram matrix and contiguous atoms are needed");
        const Dictionary<T> plain = atoms.plain();
        nb::gil_scoped_release release;
        tables.reset(kernels<T>().fast.create(plain, method, search));
    }
    void solve(const Signals<T> &signals) const {
        signals.check(atoms, true, true);
        const Tile<T> tile = signals.plain();
        nb::gil_scoped_release release;
        kernels<T>().fast.solve(tables.get(), tile);
    }
};

template <class T> void careful(const Atoms<T> &atoms, Method method, const Signals<T> &signals, In<T, 2> products) {
    signals.check(atoms, false, true);
    require(int64_t(products.shape(0)) == signals.unsolved() && products.shape(1) == atoms.atoms.shape(0), "products do not fit");
    const Dictionary<T> dictionary = atoms.plain();
    const Tile<T> tile = signals.plain();
    nb::gil_scoped_release release;
    kernels<T>().careful(dictionary, method, tile, products.data());
}

template <class T> class DirectKernel {
    Atoms<T> atoms;
    Signals<T> signals;
    In<T, 2> norms;
    size_t going = 0;
    std::unique_ptr<void, void (*)(void *)> pursuits;

  public:
    DirectKernel(const Atoms<T> &atoms, Method method, const Signals<T> &signals, In<T, 2> norms)
        : atoms(atoms), signals(signals), norms(norms), pursuits(nullptr, kernels<T>().direct.destroy) {
        signals.check(atoms, false, false);
        const bool own = norms.shape(0) == signals.y.shape(0);
        require((own || norms.shape(0) == 1) && norms.shape(1) == atoms.atoms.shape(0), "norms do not fit");
        pursuits.reset(kernels<T>().direct.create(atoms.plain(), method, signals.plain(), norms.data(), own ? norms.shape(1) : 0));
    }
    size_t vectors(Out<T, 2> out) {
        require(int64_t(out.shape(0)) >= 2 * signals.unsolved() && out.shape(1) == atoms.atoms.shape(1), "out does not fit");
        nb::gil_scoped_release release;
        return going = size_t(kernels<T>().direct.vectors(pursuits.get(), out.data()));
    }
    void advance(Out<T, 2> products) {
        require(products.shape(0) == going && products.shape(1) == atoms.atoms.shape(0), "products do not fit");
        nb::gil_scoped_release release;
        kernels<T>().direct.advance(pursuits.get(), products.data());
    }
};

// The 8-bit copy of a matrix. One call at a time: calls share memory to work in, and what they copy of the matrix.
template <class T> class ScreenKernel {
    Atoms<T> atoms;
    const int64_t n, piece;
    const size_t m;
    std::unique_ptr<void, void (*)(void *)> screen;
    std::mutex lock;
    std::vector<int16_t> p;
    std::vector<double> lower, upper;
    bool refined = false;
    using Vector = In<double, 1>;
    using Which = In<int64_t, 1>;

    template <class Work> void in_pieces(int64_t count, int threads, Work work) {
        const int pieces = int((count + piece - 1) / piece);
        auto part = [&](int k) { work(k, k * piece, std::min((k + 1) * piece, count)); };
        Team(std::min(threads, pieces)).run(pieces, part);
    }
    double enclose(const Rounded &g, const int64_t *which, int64_t count, bool fine, bool is_signed, int threads, double *low, double *high) {
        std::vector<double> best((count + piece - 1) / piece, -std::numeric_limits<double>::infinity());
        in_pieces(count, threads, [&](int k, int64_t start, int64_t stop) {
            best[k] = kernels<T>().screen.enclose(screen.get(), g, {which, start, stop}, fine, is_signed, low, high);
        });
        return *std::max_element(best.begin(), best.end());
    }
    std::optional<Rounded> rounded(const double *g) {
        Rounded out{};
        const double rounding = (double(m) + 32) * std::numeric_limits<T>::epsilon();
        if (!kernels<T>().screen.round(screen.get(), g, rounding, p.data(), out)) return std::nullopt;
        return out;
    }

  public:
    ScreenKernel(const Atoms<T> &atoms, int threads)
        : atoms(atoms), n(int64_t(atoms.atoms.shape(0))), piece(std::max<int64_t>(int64_t(1 << 18) / int64_t(atoms.atoms.shape(1)), 64)),
          m(atoms.atoms.shape(1)), screen(nullptr, kernels<T>().screen.destroy), p((m + 63) / 64 * 64), lower(n), upper(n) {
        const Dictionary<T> plain = atoms.plain();
        nb::gil_scoped_release release;
        screen.reset(kernels<T>().screen.create(plain));
        in_pieces(n, threads, [&](int, int64_t start, int64_t stop) { kernels<T>().screen.quantise(screen.get(), start, stop); });
        kernels<T>().screen.measure(screen.get());
    }

    // The best column, its product with g, and how many were compared; none where it takes the plain product to tell.
    std::optional<std::tuple<int64_t, double, int64_t>> best(Vector g, bool is_signed, int64_t most, int threads) {
        require(g.shape(0) == m, "g does not fit the matrix");
        nb::gil_scoped_release release;
        std::lock_guard<std::mutex> hold(lock);
        const auto vector = rounded(g.data());
        if (!vector) return std::nullopt;
        const double bar = enclose(*vector, nullptr, n, false, is_signed, threads, lower.data(), upper.data());
        double value = 0;
        int64_t tried = 0, found = kernels<T>().screen.winner(screen.get(), g.data(), upper.data(), bar, is_signed, most, &value, &tried);
        return std::tuple(found, value, tried);
    }

    // Lower and upper ends of intervals for some columns (none: all), and the largest lower end; false without them.
    std::optional<double> intervals(Vector g, std::optional<Which> which, bool fine, bool is_signed, int threads,
                                    Out<double, 1> low, Out<double, 1> high) {
        const int64_t count = which ? int64_t(which->shape(0)) : n;
        require(g.shape(0) == m && int64_t(low.shape(0)) == count && int64_t(high.shape(0)) == count, "arrays do not fit the matrix");
        for (int64_t k = 0; which && k < count; ++k) require(which->data()[k] >= 0 && which->data()[k] < n, "there is no such column");
        nb::gil_scoped_release release;
        std::lock_guard<std::mutex> hold(lock);
        const auto vector = rounded(g.data());
        if (!vector) return std::nullopt;
        if (fine && !refined) {
            kernels<T>().screen.begin_refining(screen.get());
            in_pieces(n, threads, [&](int, int64_t start, int64_t stop) { kernels<T>().screen.refine(screen.get(), start, stop); });
            refined = true;
        }
        return enclose(*vector, which ? which->data() : nullptr, count, fine, is_signed, threads, low.data(), high.data());
    }

    // <a, g> and <|a|, |g|> for some columns a.
    void products(Vector g, Which which, Out<double, 1> value, Out<double, 1> size) {
        require(g.shape(0) == m && value.shape(0) == which.shape(0) && size.shape(0) == which.shape(0), "arrays do not fit the matrix");
        for (size_t k = 0; k < which.shape(0); ++k) require(which.data()[k] >= 0 && which.data()[k] < n, "there is no such column");
        nb::gil_scoped_release release;
        std::lock_guard<std::mutex> hold(lock);
        kernels<T>().screen.products(screen.get(), g.data(), {which.data(), 0, int64_t(which.shape(0))}, value.data(), size.data());
    }

    // OMP or OLS of the signals that are not solved, one after the other.
    void alone(Method method, const Signals<T> &signals, int threads) {
        signals.check(atoms, false, false);
        const Dictionary<T> plain = atoms.plain();
        const Tile<T> tile = signals.plain();
        nb::gil_scoped_release release;
        std::lock_guard<std::mutex> hold(lock);
        Team team(threads);
        kernels<T>().alone(screen.get(), plain, method, tile, team);
    }
};

template <class T> void bind(nb::module_ m) {
    nb::class_<Atoms<T>>(m, "Atoms").def(nb::init<Strided<T>, In<T, 1>, std::optional<In<T, 2>>>(), "atoms"_a, "norms"_a, "gram"_a.none() = nb::none());
    nb::class_<Signals<T>>(m, "Signals")
        .def(nb::init<In<T, 2>, std::optional<In<T, 2>>, In<int64_t, 1>, In<T, 1>, Out<int32_t, 2>, Out<T, 2>, Out<int64_t, 1>>(),
             "y"_a, "weights"_a.none(), "limits"_a, "tols"_a, "atoms"_a, "x"_a, "counts"_a)
        .def("unsolved", &Signals<T>::unsolved);
    nb::class_<FastKernel<T>>(m, "Fast").def(nb::init<const Atoms<T> &, Method, Search>()).def("solve", &FastKernel<T>::solve);
    m.def("careful", &careful<T>);
    nb::class_<DirectKernel<T>>(m, "Direct")
        .def(nb::init<const Atoms<T> &, Method, const Signals<T> &, In<T, 2>>())
        .def("vectors", &DirectKernel<T>::vectors)
        .def("advance", &DirectKernel<T>::advance);
    nb::class_<ScreenKernel<T>>(m, "Screen")
        .def(nb::init<const Atoms<T> &, int>())
        .def("best", &ScreenKernel<T>::best)
        .def("intervals", &ScreenKernel<T>::intervals, "g"_a, "which"_a.none(), "fine"_a, "signed"_a, "threads"_a, "lower"_a, "upper"_a)
        .def("products", &ScreenKernel<T>::products)
        .def("alone", &ScreenKernel<T>::alone);
}

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leak
    m.attr("level") = levels().name;
    nb::enum_<Method>(m, "Method").value("omp", Method::omp).value("mp", Method::mp).value("ols", Method::ols).value("nnomp", Method::nnomp);
    nb::enum_<Search>(m, "Search").value("int16", Search::int16).value("float32", Search::float32);
    bind<double>(m.def_submodule("float64"));
    bind<float>(m.def_submodule("float32"));
    m.def("row_products", [](In<double, 2> A, In<double, 2> B, In<int32_t, 1> rows, In<int32_t, 1> cols, Out<double, 1> out) {
        require(A.shape(1) == B.shape(1) && rows.shape(0) == cols.shape(0) && out.shape(0) == rows.shape(0), "arrays do not fit");
        nb::gil_scoped_release release;
        levels().row_products(A.data(), B.data(), int(A.shape(1)), rows.data(), cols.data(), int64_t(rows.shape(0)), out.data());
    });
    m.def("lower_gram", [](In<int32_t, 1> pointers, In<int32_t, 1> indices, In<double, 1> data, Out<double, 2> G) {
        require(pointers.shape(0) > 0 && G.shape(0) == G.shape(1), "arrays do not fit");
        nb::gil_scoped_release release;
        levels().lower_gram(pointers.data(), indices.data(), data.data(), int64_t(pointers.shape(0)) - 1, G.data(), int64_t(G.shape(0)));
    });
}
