package config

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// The choices for one kind of personal data.
const (
	PersonalPlaceholder = "placeholder" // [redacted:phone]: the default
	PersonalMask        = "mask"        // all but the last characters: ********4567
	PersonalKeep        = "keep"        // as it is
)

// personalKinds are the valid kinds of personal data.
var personalKinds = []string{"email", "phone", "card", "iban", "us-ssn", "ip-address"}

// Personal maps kinds of personal data to a choice. A missing kind has no separate choice.
type Personal map[string]string

// personal reads a choice for each kind, or one for all.
func (d *decoder) personal(to *Personal) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		target, err := d.follow(n)
		if err != nil {
			return err
		}
		choices := Personal{}
		*to = choices
		if target.Kind == yaml.ScalarNode && !isNull(target) {
			var choice string
			if err := d.scalar(n, path, personalChoice(&choice)); err != nil {
				return err
			}
			for _, kind := range personalKinds {
				choices[kind] = choice
			}
			return nil
		}
		return d.entries(n, path, func(key, val *yaml.Node) error {
			if !slices.Contains(personalKinds, key.Value) {
				fields := make([]field, len(personalKinds))
				for i, kind := range personalKinds {
					fields[i].key = kind
				}
				return d.unknownKey(key, path, fields)
			}
			choice := PersonalPlaceholder
			err := d.scalar(val, join(path, key.Value), personalChoice(&choice))
			choices[key.Value] = choice
			return err
		})
	}
}

func personalChoice(to *string) word {
	if *to == "" {
		*to = PersonalPlaceholder
	}
	return word{to, []string{PersonalPlaceholder, PersonalMask, PersonalKeep}}
}
