package alerts

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestDefaults_AreValidAndHaveEveryRuleOnce(t *testing.T) {
	defaults := Defaults()
	assert.NoError(t, Check(defaults))
	assert.Equal(t, len(defaults), 21, "rules")
	*defaults[0].Levels[0].Limit, defaults[0].Levels[1] = 1, Level{}
	if again := Defaults(); again[0].Levels[1].Severity != Critical {
		t.Error("a change of returned defaults changes the defaults")
	}
}

func TestCheck_NamesEachFieldThatIsNotValid(t *testing.T) {
	for want, s := range map[string]Setting{
		"":                             {Rule: EnergyLow, Off: true, For: time.Minute, Levels: []Level{level(Critical, 5)}},
		"rules[1].rule":                {Rule: "theft"},
		"rules[1].for_s":               {Rule: LeftOpen, For: -time.Second, Levels: []Level{warn}},
		"rules[1].for_s ":              {Rule: LeftOpen, For: 25 * time.Hour, Levels: []Level{warn}},
		"rules[1].levels":              {Rule: EnergyLow},
		"rules[1].levels ":             {Rule: LeftOpen, Levels: []Level{warn, critical}},
		"rules[1].levels[0].severity":  {Rule: LeftOpen, Levels: []Level{{Severity: "page"}}},
		"rules[1].levels[1].severity":  {Rule: EnergyLow, Levels: []Level{level(Warning, 20), level(Info, 10)}},
		"rules[1].levels[0].limit":     {Rule: EnergyLow, Levels: []Level{warn}},
		"rules[1].levels[0].limit ":    {Rule: LeftOpen, Levels: []Level{level(Warning, 1)}},
		"rules[1].levels[0].limit  ":   {Rule: EnergyLow, Levels: []Level{level(Warning, 101)}},
		"rules[1].levels[1].limit":     {Rule: EnergyLow, Levels: []Level{level(Info, 10), level(Warning, 10)}},
		"rules[1].levels[1].limit ":    {Rule: MovedWithoutBooking, Levels: []Level{level(Info, 200), level(Warning, 200)}},
		"rules[1].rule [second]":       {Rule: Overdue, Levels: []Level{warn}},
		"rules[1].levels[0].severity ": {Rule: MassAccess, Levels: []Level{level("", 60)}},
	} {
		var fields []string
		if joined, ok := Check([]Setting{{Rule: Overdue, Levels: []Level{warn}}, s}).(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				var field *telematics.FieldError
				if errors.As(err, &field) {
					fields = append(fields, field.Field)
				}
			}
		}
		want, _, _ = strings.Cut(want, " ")
		if !slices.Equal(fields, strings.Fields(want)) {
			t.Errorf("%+v: fields %q, want %q", s, fields, want)
		}
	}
}

func TestComplete_KeepsTheOrderAndTheDefaultsOfOthers(t *testing.T) {
	set := Complete([]Setting{{Rule: MassAccess, Off: true}, {Rule: "removed"}})
	if len(set) != len(Defaults()) || !set[len(set)-1].Off || set[0].Rule != Battery12VLow || len(set[0].Levels) != 2 {
		t.Errorf("completed: %+v", set)
	}
}
