package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// score is the result of a scanner for a set. Disputed negatives are those in which Gitleaks, with
// all of its rules, reports a secret. Most of them are credentials of another kind than the rule
// whose limits they show.
type score struct{ found, flagged, disputed int }

func rate(s scanner, examples []example, others gitleaks) score {
	var sum score
	for _, e := range examples {
		switch {
		case len(e.Secrets) > 0 && s.finds(e):
			sum.found++
		case len(e.Secrets) == 0 && s.flags(e.Text) > 0:
			sum.flagged++
			if others.flags(e.Text) > 0 {
				sum.disputed++
			}
		}
	}
	return sum
}

// printExamples prints, for each set, how many of its examples are found and how many of its
// negatives are flagged.
func printExamples(out io.Writer, sets []set, ours airlock, others gitleaks, missed bool) {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "source\texamples\tAirlock finds\tGitleaks finds\tno sample\tAirlock finds\tnegatives\tAirlock flags\tGitleaks "+
		"flags\tundisputed\tAirlock flags\t")
	for _, s := range sets {
		ours.personal = s.personal
		positives := 0
		for _, e := range s.examples {
			if len(e.Secrets) > 0 {
				positives++
			}
		}
		negatives := len(s.examples) - positives
		a := rate(ours, s.examples, others)
		theirFound, theirFlagged, undisputed := "–", "–", negatives
		if !s.personal {
			g := rate(others, s.examples, others)
			undisputed -= g.flagged
			theirFound, theirFlagged = share(g.found, positives), share(g.flagged, negatives)
		}
		real := slices.DeleteFunc(slices.Clone(s.examples), func(e example) bool {
			return len(e.Secrets) == 0 || e.isSample()
		})
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%d\t%s\t\n", s.name, positives,
			share(a.found, positives), theirFound, len(real), share(rate(ours, real, others).found, len(real)),
			negatives, share(a.flagged, negatives), theirFlagged, undisputed, share(a.flagged-a.disputed, undisputed))
	}
	table.Flush()
	if !missed {
		return
	}
	for _, s := range sets {
		ours.personal = s.personal
		for _, e := range s.examples {
			if len(e.Secrets) > 0 && !ours.finds(e) {
				fmt.Fprintf(out, "\nmissed in %s, %s: %q of %q\n", s.name, e.Name, e.longest(), excerpt(e.Text))
			}
			if len(e.Secrets) == 0 && ours.flags(e.Text) > 0 {
				_, kinds := ours.redactor.Bytes([]byte(e.Text))
				fmt.Fprintf(out, "\nflagged in %s, %s: %v in %q\n", s.name, e.Name, kinds, excerpt(e.Text))
			}
		}
	}
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(of))
}

func excerpt(text string) string { return text[:min(len(text), 600)] }

// printMaterials prints the findings per megabyte in each ordinary material. Airlock's findings of
// personal data are in a separate column.
func printMaterials(out io.Writer, materials []material, ours airlock, others gitleaks, flagged int) {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nordinary material\tMB\tAirlock secrets/MB\tGitleaks secrets/MB\tAirlock personal data/MB\t")
	var details strings.Builder
	for _, m := range materials {
		size, theirs, secrets, persons := 0, 0, map[string]int{}, map[string]int{}
		for _, text := range m.texts {
			size += len(text)
			theirs += others.flags(text)
			found, personal := ours.count(text)
			add(secrets, found)
			add(persons, personal)
		}
		mb := float64(size) / 1e6
		fmt.Fprintf(table, "%s\t%.1f\t%.2f\t%.2f\t%.2f\t\n", m.name, mb, float64(total(secrets))/mb, float64(theirs)/mb,
			float64(total(persons))/mb)
		fmt.Fprintf(&details, "%s: %s; %s\n", m.name, kinds(secrets), kinds(persons))
	}
	table.Flush()
	fmt.Fprintf(out, "\nby kind:\n%s", details.String())
	if flagged > 0 {
		printFlagged(out, materials, ours, flagged)
	}
}

// printFlagged prints the text around the first markers of each material.
func printFlagged(out io.Writer, materials []material, ours airlock, most int) {
	for _, m := range materials {
		left := most
		for _, text := range m.texts {
			cleaned, _ := ours.redactor.Bytes([]byte(text))
			for at := 0; left > 0; left-- {
				i := nextSecret(cleaned[at:])
				if i < 0 {
					break
				}
				at += i
				fmt.Fprintf(out, "%s: %q\n", m.name, cleaned[max(0, at-80):min(len(cleaned), at+80)])
				at++
			}
		}
	}
}

func add(sum, more map[string]int) {
	for kind, n := range more {
		sum[kind] += n
	}
}

func total(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

func kinds(counts map[string]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

var marker = regexp.MustCompile(`\[redacted:([a-z0-9-]+)\]`)

// nextSecret returns the position of the next marker of a secret, or -1.
func nextSecret(cleaned []byte) int {
	for _, m := range marker.FindAllSubmatchIndex(cleaned, -1) {
		if !slices.Contains(personal, string(cleaned[m[2]:m[3]])) {
			return m[0]
		}
	}
	return -1
}
