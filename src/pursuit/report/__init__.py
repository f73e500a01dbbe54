from pursuit.report.page import Cell, Figure, Section, Table, Tile, page
