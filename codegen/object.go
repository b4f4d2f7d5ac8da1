package codegen

// object converts the keywords of objects to a record, or to a table if no key is known in
// advance.
func (b *builder) object(s, base *value) *shape {
	out := &shape{form: record, about: s}
	properties := s.get("properties")
	if properties != nil {
		for _, m := range properties.members {
			out.fields = append(out.fields, field{key: m.key, shape: b.build(m.value, base), schema: m.value})
		}
	}
	out.require(list(s.get("required")))
	others, elem := b.others(s, base)
	out.others = others
	if len(out.fields) > 0 || properties != nil && others == unsaid || others == closed {
		return out
	}
	if keys := b.tableKeys(s, elem); keys != nil {
		return keys
	}
	return &shape{form: table, elem: elem, others: others}
}

// require marks fields as required, and adds those that no property describes.
func (s *shape) require(keys []*value) {
	place := make(map[string]int, len(s.fields))
	for i := range s.fields {
		place[s.fields[i].key] = i
	}
	for _, key := range keys {
		if key.kind != isString {
			continue
		}
		at, found := place[key.text]
		if !found {
			at = len(s.fields)
			place[key.text] = at
			s.fields = append(s.fields, field{key: key.text, shape: anyShape})
		}
		s.fields[at].required = true
	}
}

// others reports whether additional keys are allowed, and the shape of their values.
func (b *builder) others(s, base *value) (openness, *shape) {
	var shapes []*shape
	if patterns := s.get("patternProperties"); patterns != nil {
		for _, m := range patterns.members {
			shapes = append(shapes, b.build(m.value, base))
		}
	}
	additional := s.get("additionalProperties")
	if additional == nil {
		additional = s.get("unevaluatedProperties")
	}
	if additional != nil {
		shapes = append(shapes, b.build(additional, base))
	}
	switch elem := either(shapes...); {
	case len(shapes) == 0:
		return unsaid, anyShape
	case elem.form == nothing:
		return closed, nil
	default:
		return open, elem
	}
}

// tableKeys returns a record in place of a table whose keys are a short list.
func (b *builder) tableKeys(s *value, elem *shape) *shape {
	names := list(s.get("propertyNames").get("enum"))
	if len(names) == 0 || len(names) > maxUnion {
		return nil
	}
	out := &shape{form: record, others: closed}
	for _, name := range names {
		if name.kind == isString {
			out.fields = append(out.fields, field{key: name.text, shape: elem})
		}
	}
	return out
}
