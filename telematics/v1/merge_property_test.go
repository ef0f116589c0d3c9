package v1

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// [LAW-7] The reports are drawn as units send them: complete and partial, of equal times, older,
// from the future [TEL-5], with nulls, and with values for the raw fields.

func TestMerge_AnyOrderAndRepetitionConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reports := drawReports(t)
		wantSame(t, merged(drawDeliveries(t, reports)), merged(reports))
	})
}

func TestJoin_InstancesThatShareReportsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reports := drawReports(t)
		var here, there telematics.Snapshot
		for _, r := range drawDeliveries(t, reports) {
			if rapid.Bool().Draw(t, "here") {
				here = telematics.Merge(here, r)
			} else {
				there = telematics.Merge(there, r)
			}
			switch rapid.SampledFrom([]string{"nothing", "here", "there", "both"}).Draw(t, "learns") {
			case "here":
				here = telematics.Join(here, there)
			case "there":
				there = telematics.Join(there, here)
			case "both":
				here, there = telematics.Join(here, there), telematics.Join(there, here)
			}
		}
		wantSame(t, telematics.Join(here, there), merged(reports))
		wantSame(t, telematics.Join(there, here), merged(reports))
	})
}

func TestJoin_PartialMergesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reports := drawReports(t)
		var sums []telematics.Snapshot
		for rest := drawDeliveries(t, reports); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "reports of a sum")
			sums = append(sums, merged(rest[:n]))
			rest = rest[n:]
		}
		for len(sums) > 1 { // in any order of joins
			sums = rapid.Permutation(sums).Draw(t, "sums")
			sums = append(sums[2:], telematics.Join(sums[0], sums[1]))
		}
		wantSame(t, sums[0], merged(reports))
	})
}

func TestJoin_IsCommutativeAssociativeAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := merged(drawReports(t)), merged(drawReports(t)), merged(drawReports(t))
		wantSame(t, telematics.Join(a, b), telematics.Join(b, a))
		wantSame(t, telematics.Join(telematics.Join(a, b), c), telematics.Join(a, telematics.Join(b, c)))
		wantSame(t, telematics.Join(a, a), a)
		wantSame(t, telematics.Join(telematics.Join(a, b), b), telematics.Join(a, b))
		wantSame(t, telematics.Join(a, nil), a)
		wantSame(t, telematics.Join(nil, a), a)
	})
}

func TestMergeAndJoin_ChangeNoArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, r := merged(drawReports(t)), merged(drawReports(t)), drawReport(t)
		wasA, wasB, wasR := encoded(a), encoded(b), encoded(telematics.Merge(nil, r))
		clear(telematics.Merge(a, r))
		clear(telematics.Join(a, b))
		clear(telematics.Join(a, nil))
		if !maps.Equal(encoded(a), wasA) || !maps.Equal(encoded(b), wasB) || !maps.Equal(encoded(telematics.Merge(nil, r)), wasR) {
			t.Errorf("the arguments %v, %v and %v became %v, %v and %v", wasA, wasB, wasR, encoded(a), encoded(b), r)
		}
	})
}

func drawReports(t *rapid.T) []telematics.Report {
	return rapid.SliceOfN(rapid.Custom(drawReport), 1, 8).Draw(t, "reports")
}

// drawDeliveries returns each report at least once, in any order.
func drawDeliveries(t *rapid.T, reports []telematics.Report) []telematics.Report {
	again := rapid.SliceOfN(rapid.SampledFrom(reports), 0, len(reports)).Draw(t, "again")
	return rapid.Permutation(slices.Concat(reports, again)).Draw(t, "deliveries")
}

// drawReport draws from few times and values, so that many reports have equal times.
func drawReport(t *rapid.T) telematics.Report {
	message := map[string]any{"at": rapid.SampledFrom([]string{
		"2026-01-02T10:00:00Z", "2026-01-02T10:00:01Z", "2026-01-02T11:00:01+01:00", "2026-01-02T10:00:01.0009Z", "2026-01-01T10:00:00Z",
		"2026-01-02T10:04:00Z", "2026-01-02T10:06:00Z", "2031-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "yesterday",
	}).Draw(t, "at")}
	said := slices.Sorted(maps.Keys(interfaceFields))
	if !rapid.Bool().Draw(t, "whole") {
		said = rapid.SliceOfNDistinct(rapid.SampledFrom(said), 0, 5, rapid.ID[string]).Draw(t, "fields")
	}
	for _, text := range said {
		field, _ := telematics.FieldOf(text)
		section, name, _ := strings.Cut(text, ".")
		within := inside(message, section)
		if group, member, ok := strings.Cut(name, "."); ok {
			within, name = inside(within, group), member
		}
		value := json.RawMessage(rapid.SampledFrom(valuesOf(field)).Draw(t, text))
		if name == "" { // oem_data
			within, name = message, section
		}
		within[name] = value
	}
	for _, section := range telematics.Sections {
		if rapid.IntRange(0, 15).Draw(t, section+" is null") == 15 {
			message[section] = nil
		}
	}
	arrived := received.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "arrived")) * time.Second)
	r, _, err := DecodeReport(encode(message), arrived)
	require.NoError(t, err, "%s", encode(message))
	return r
}

// inside returns an object within an object, and adds it where it is missing.
func inside(object map[string]any, name string) map[string]any {
	if within, ok := object[name].(map[string]any); ok {
		return within
	}
	within := map[string]any{}
	object[name] = within
	return within
}

// valuesOf lists values that units send in a field; some are invalid.
func valuesOf(field telematics.Field) []string {
	values := []string{interfaceFields[field.String()].json, `null`}
	switch interfaceFields[field.String()].want.(type) {
	case float64:
		values = append(values, `0`, `-0`, `1`, `1e9`)
	case bool:
		values = append(values, `true`, `false`)
	}
	switch field {
	case telematics.Gear:
		values = append(values, `"S"`, `"R"`, `"reverse"`)
	case telematics.Charging:
		values = append(values, `"fault"`, `"plugged_in"`, `"scheduled"`)
	case telematics.DTCs:
		values = append(values, `[]`, `["12-34"]`, `["P0420","12-34",7]`)
	case telematics.WarningLamps:
		values = append(values, `[]`, `["oil","oil"]`)
	case telematics.OEMData:
		values = append(values, `{}`, `{"a":0}`, `{"a":-0}`, `{"a":[]}`)
	}
	return values
}

// encoded returns a snapshot's readings in the form in which they are stored.
func encoded(s telematics.Snapshot) map[telematics.Field]string {
	texts := map[telematics.Field]string{}
	for field, reading := range s.All() {
		texts[field] = fmt.Sprintf("%s at %s", encode(reading.Value), telematics.FormatTime(reading.At))
	}
	return texts
}

func wantSame(t *rapid.T, got, want telematics.Snapshot) {
	t.Helper()
	if !maps.Equal(encoded(got), encoded(want)) || !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n%v\nwant\n%v", encoded(got), encoded(want))
	}
}

func merged(reports []telematics.Report) telematics.Snapshot {
	var s telematics.Snapshot
	for _, r := range reports {
		s = telematics.Merge(s, r)
	}
	return s
}
