package codegen

import "slices"

// meet returns a shape for what both shapes allow. Where no exact one exists
// it returns the more telling of the two, which allows more, never less.
func (b *builder) meet(x, y *shape) *shape {
	switch {
	case x.form == anything, x == y:
		return y
	case y.form == anything:
		return x
	case x.form == nothing, y.form == nothing:
		return neverShape
	case x.form == reference, y.form == reference:
		return b.meetReference(x, y)
	case x.form == union:
		return b.meetUnion(x, y)
	case y.form == union:
		return b.meetUnion(y, x)
	case covers(x, y):
		return y
	case covers(y, x):
		return x
	case x.form == record && y.form == record:
		return b.meetRecords(x, y)
	case x.form == record && y.form == table:
		return opened(x, y)
	case x.form == table && y.form == record:
		return opened(y, x)
	case x.form == table && y.form == table:
		return &shape{form: table, elem: b.meet(x.elem, y.elem), others: max(x.others, y.others)}
	case x.form == array && y.form == array:
		return &shape{form: array, elem: b.meet(x.elem, y.elem)}
	case x.form == tuple && (y.form == tuple || y.form == array):
		return x
	case x.form == array && y.form == tuple:
		return y
	}
	return neverShape
}

// meetReference intersects with the target of a reference. A target that is still being
// built, inside its definition, adds no constraint.
func (b *builder) meetReference(x, y *shape) *shape {
	if x.form == y.form && x.target == y.target {
		return x
	}
	behindX, behindY := x.follow(), y.follow()
	switch {
	case behindX.form == anything:
		return y
	case behindY.form == anything:
		return x
	}
	return b.meet(behindX, behindY)
}

func (b *builder) meetUnion(u, other *shape) *shape {
	b.steps += len(u.items)
	if b.steps > maxSteps {
		return anyShape
	}
	items := make([]*shape, len(u.items))
	for i, item := range u.items {
		items[i] = b.meet(item, other)
	}
	return either(items...)
}

// meetRecords joins the fields of two records; a field of both must fit both.
func (b *builder) meetRecords(x, y *shape) *shape {
	b.steps += len(x.fields) + len(y.fields)
	if b.steps > maxSteps {
		return anyShape
	}
	out := &shape{form: record, fields: slices.Clone(x.fields), others: max(x.others, y.others), about: x.about,
		demand: x.demand}
	if out.demand == "" {
		out.demand = y.demand
	}
	if x.others == closed || y.others == closed {
		out.others = closed
	}
	place := make(map[string]int, len(x.fields))
	for i := range x.fields {
		place[x.fields[i].key] = i
	}
	for _, f := range y.fields {
		at, found := place[f.key]
		if !found {
			out.fields = append(out.fields, f)
			continue
		}
		have := &out.fields[at]
		have.shape = b.meet(have.shape, f.shape)
		have.required = have.required || f.required
		if have.schema == nil {
			have.schema = f.schema
		}
	}
	return out
}

// opened returns a record that also accepts the keys of a table, if the table's schema
// states so and the record's schema does not forbid it.
func opened(s, table *shape) *shape {
	if s.others == closed || table.others != open {
		return s
	}
	out := *s
	out.others = open
	return &out
}
