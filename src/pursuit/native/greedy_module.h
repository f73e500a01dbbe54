// The bindings of greedy.h, descent.h and lasso_path.h, a part of module.cpp.
#pragma once

template <class T> class GreedyKernel {
    using Table = In<double, 2>;
    std::unique_ptr<GreedyPaths> paths;
    int count, p, across;

  public:
    // X is a matrix by any strides, or (values, indices, pointers) of sparse columns with the number of rows.
    GreedyKernel(std::optional<Strided<T>> dense,
                 std::optional<std::tuple<In<T, 1>, In<int32_t, 1>, In<int64_t, 1>>> csc, int64_t all_rows,
                 In<int64_t, 1> rows, Table y, Table weights, Table held, In<int32_t, 1> group, In<double, 1> l2,
                 In<double, 1> tols, int loss, int classes, double width, bool intercept, double separated, int threads)
        : count(int(group.shape(0))) {
        const size_t n = rows.shape(0), columns = dense ? dense->shape(1) : std::get<2>(*csc).shape(0) - 1;
        p = int(columns);
        require(std::max({n, columns, size_t(all_rows)}) < size_t(std::numeric_limits<int>::max()), "too many numbers");
        require(n > 0 && p > 0 && (!dense || int64_t(dense->shape(0)) == all_rows), "X does not fit");
        require(std::all_of(rows.data(), rows.data() + n, [=](int64_t i) { return i >= 0 && i < all_rows; }), "rows");
        require(loss >= 0 && loss <= int(GreedyLoss::multinomial), "there is no such loss");
        require(y.shape(1) == n && y.shape(0) > 0 && weights.shape(1) == n && held.shape(1) == n &&
                    held.shape(0) == weights.shape(0) && l2.shape(0) == group.shape(0) &&
                    tols.shape(0) == group.shape(0),
                "arrays do not fit");
        require(std::all_of(group.data(), group.data() + count,
                            [&](int32_t k) { return k >= 0 && size_t(k) < weights.shape(0); }),
                "there is no such group");
        const bool multinomial = GreedyLoss(loss) == GreedyLoss::multinomial;
        if (multinomial)
            require(
                classes >= 2 && y.shape(0) == 1 &&
                    std::all_of(y.data(), y.data() + n, [=](double c) { return c >= 0 && c < classes && c == int(c); }),
                "there is no such class");
        across = multinomial ? classes : int(y.shape(0));
        GreedyMatrix<T> X{int(n), p, int(all_rows), rows.data(), nullptr, 0, 0, nullptr, nullptr, nullptr};
        if (dense) {
            X.dense = dense->data(), X.row_stride = dense->stride(0), X.column_stride = dense->stride(1);
        } else {
            const auto &[values, indices, pointers] = *csc;
            const size_t entries = indices.shape(0);
            require(values.shape(0) == entries && pointers.data()[0] == 0 && size_t(pointers.data()[p]) == entries &&
                        std::is_sorted(pointers.data(), pointers.data() + p + 1),
                    "pointers must increase");
            require(std::all_of(indices.data(), indices.data() + entries,
                                [=](int32_t i) { return i >= 0 && i < all_rows; }),
                    "an index is out of range");
            X.values = values.data(), X.indices = indices.data(), X.pointers = pointers.data();
        }
        const GreedyTask task{
            GreedyLoss(loss), int(y.shape(0)), classes,  int(weights.shape(0)), count,       width,
            separated,        intercept,       y.data(), weights.data(),        held.data(), group.data(),
            l2.data(),        tols.data()};
        nb::gil_scoped_release release;
        paths.reset(kernels<T>().greedy(X, task, threads));
    }
    int advance(const Out<int32_t, 1> &entered) {
        require(int(entered.shape(0)) == count, "arrays do not fit");
        return paths->advance(entered.data());
    }
    void read(const Out<double, 1> &values, const Out<double, 1> &losses) const {
        require(int(values.shape(0)) == count && int(losses.shape(0)) == count, "arrays do not fit");
        paths->read(values.data(), losses.data());
    }
    void coefficients(int problem, const Out<double, 2> &coef, const Out<double, 1> &intercept) const {
        require(problem >= 0 && problem < count && int(coef.shape(0)) == paths->size(problem) &&
                    int(coef.shape(1)) == across && int(intercept.shape(0)) == across,
                "arrays do not fit");
        paths->coefficients(problem, coef.data(), intercept.data());
    }
    void scales(const Out<double, 1> &out) const {
        require(int(out.shape(0)) == p, "arrays do not fit");
        paths->scales(out.data());
    }
};

template <class T> void bind_greedy(nb::module_ m) {
    using Csc = std::tuple<In<T, 1>, In<int32_t, 1>, In<int64_t, 1>>;
    using Table = In<double, 2>;
    nb::class_<GreedyKernel<T>>(m, "Greedy")
        .def(nb::init<std::optional<Strided<T>>, std::optional<Csc>, int64_t, In<int64_t, 1>, Table, Table, Table,
                      In<int32_t, 1>, In<double, 1>, In<double, 1>, int, int, double, bool, double, int>(),
             "dense"_a.none(), "csc"_a.none(), "all_rows"_a, "rows"_a, "y"_a, "weights"_a, "held"_a, "group"_a, "l2"_a,
             "tols"_a, "loss"_a, "classes"_a, "width"_a, "intercept"_a, "separated"_a, "threads"_a)
        .def("advance", &GreedyKernel<T>::advance, Unlocked(), "entered"_a.noconvert())
        .def("read", &GreedyKernel<T>::read, Unlocked(), "values"_a.noconvert(), "losses"_a.noconvert())
        .def("coefficients", &GreedyKernel<T>::coefficients, Unlocked(), "problem"_a, "coef"_a.noconvert(),
             "intercept"_a.noconvert())
        .def("scales", &GreedyKernel<T>::scales, Unlocked(), "out"_a.noconvert());
}

// Whether these are the places where parts of `last` numbers begin.
static bool increases(const In<int64_t, 1> &numbers, size_t last) {
    const int64_t *begin = numbers.data(), *end = begin + numbers.shape(0);
    return begin < end && *begin == 0 && size_t(end[-1]) == last && std::is_sorted(begin, end);
}

// A matrix is given by the entries of its columns, or by its columns one after the other where there are no indices.
static int descend(const In<double, 1> &values, const std::optional<In<int32_t, 1>> &indices,
                   const std::optional<In<int64_t, 1>> &pointers, const In<int64_t, 1> &columns,
                   const In<int64_t, 1> &starts, const In<double, 1> &prices, const In<double, 1> &ridges,
                   const In<double, 1> &h, double tol, int most, const Out<double, 1> &v, const Out<double, 1> &b,
                   const Out<double, 1> &along) {
    const size_t count = prices.shape(0), rows = h.shape(0), entries = values.shape(0), used = columns.shape(0);
    require(ridges.shape(0) == count && b.shape(0) == used && v.shape(0) == rows && along.shape(0) == rows && rows > 0,
            "arrays do not fit");
    require(starts.shape(0) == count + 1 && increases(starts, used), "blocks do not fit");
    require(indices ? pointers && indices->shape(0) == entries && increases(*pointers, entries)
                    : !pointers && entries % rows == 0,
            "columns do not fit");
    if (indices)
        require(std::all_of(indices->data(), indices->data() + entries,
                            [=](int32_t i) { return i >= 0 && size_t(i) < rows; }),
                "an index is out of range");
    const int64_t width = indices ? int64_t(pointers->shape(0)) - 1 : int64_t(entries / rows);
    require(std::all_of(columns.data(), columns.data() + used, [=](int64_t j) { return j >= 0 && j <= width; }),
            "there is no such column");
    const PricedColumns X{int(rows),
                          width,
                          int64_t(count),
                          values.data(),
                          indices ? indices->data() : nullptr,
                          indices ? pointers->data() : nullptr,
                          columns.data(),
                          starts.data(),
                          prices.data(),
                          ridges.data()};
    return level().descend(X, h.data(), tol, most, v.data(), b.data(), along.data());
}

class LassoPathKernel {
    std::tuple<In<double, 2>, In<int64_t, 1>, In<double, 1>, In<double, 1>> arrays;  // which the path reads
    std::unique_ptr<LassoPath> path;

  public:
    LassoPathKernel(In<double, 2> columns, In<int64_t, 1> starts, In<double, 1> prices, In<double, 1> y, double l2)
        : arrays(columns, starts, prices, y) {
        const size_t rows = columns.shape(1), width = columns.shape(0), count = prices.shape(0);
        require(rows > 0 && rows < size_t(std::numeric_limits<int>::max()) && y.shape(0) == rows && width > 0 &&
                    width < size_t(std::numeric_limits<int>::max()) && starts.shape(0) == count + 1 &&
                    increases(starts, width),
                "arrays do not fit");
        path.reset(level().lasso_path(
            {int(rows), int64_t(width), int64_t(count), columns.data(), y.data(), prices.data(), starts.data(), l2}));
    }
    std::tuple<int, double, double> minimise(double penalty, double tol, int most) {
        double value = 0, gap = 0;
        const int turns = path->minimise(penalty, tol, most, value, gap);
        return {turns, value, gap};
    }
    void coefficients(const Out<double, 1> &out) const {
        require(out.shape(0) == std::get<0>(arrays).shape(0), "arrays do not fit");
        path->coefficients(out.data());
    }
};
