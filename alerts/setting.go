package alerts

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// limits are what a rule's limits mean.
type limits struct {
	unit        string // empty: the rule has no limits
	below       bool   // the condition is true below the limit; else above it
	least, most float64
}

// definition is a rule with its limits and its defaults.
type definition struct {
	Setting
	limits
}

func level(s Severity, limit float64) Level { return Level{Severity: s, Limit: &limit} }

func rule(name Rule, held time.Duration, is limits, levels ...Level) definition {
	return definition{Setting: Setting{Rule: name, For: held, Levels: levels}, limits: is}
}

var (
	none, info     = limits{}, []Level{{Severity: Info}}
	warn, critical = Level{Severity: Warning}, Level{Severity: Critical}
)

// definitions are all rules, in the order in which they are listed.
var definitions = []definition{
	rule(Battery12VLow, 10*time.Minute, limits{"V", true, 0, 60}, level(Warning, 12.2), level(Critical, 11.8)),
	rule(EnergyLow, 5*time.Minute, limits{"%", true, 0, 100}, level(Info, 20), level(Warning, 10)),
	rule(Silent, 10*time.Minute, none, warn),
	rule(Deaf, 0, none, warn),
	rule(UnitClock, 0, none, warn),
	rule(MovedWithoutBooking, 0, limits{"m", false, 20, 100_000}, level(Critical, 150)),
	rule(IgnitionWithoutBooking, time.Minute, none, critical),
	rule(LeftOpen, 5*time.Minute, none, warn),
	rule(OutsideArea, 2*time.Minute, none, warn),
	rule(ParkedForbidden, 0, none, warn),
	rule(Overdue, 15*time.Minute, none, warn),
	rule(StartedNotOpened, 15*time.Minute, none, warn),
	rule(ChargeFailed, 0, none, warn),
	rule(UnitAlarm, 0, none, critical),
	rule(TroubleCode, 0, none, info...),
	rule(Lamp, 0, none, info...),
	rule(ServiceDue, 0, limits{"km", true, -100_000, 100_000}, level(Info, 500)),
	rule(CommandUnknown, 0, none, warn),
	rule(CommandContradicted, 0, none, critical),
	rule(UnitRejects, 0, none, warn),
	rule(MassAccess, 0, limits{"vehicles", false, 1, 100_000}, level(Critical, 50)),
}

// Defaults returns the settings of an agency that has set none: all rules, in the order of a list.
func Defaults() []Setting {
	list := make([]Setting, len(definitions))
	for i, d := range definitions {
		list[i] = d.Setting
		list[i].Levels = slices.Clone(d.Levels)
	}
	return list
}

// Unit returns the unit of a rule's limits, and whether its condition is true below them; empty: it
// has none.
func (r Rule) Unit() (unit string, below bool) {
	d := r.definition()
	return d.unit, d.below
}

func (r Rule) definition() definition {
	i := slices.IndexFunc(definitions, func(d definition) bool { return d.Rule == r })
	if i < 0 {
		return definition{}
	}
	return definitions[i]
}

// Severities are all severities, the mildest first.
var Severities = []Severity{Info, Warning, Critical}

// maxFor is the longest time for which a condition can have to hold.
const maxFor = 24 * time.Hour

// Complete returns the settings of all rules in their order: those that are set, and the defaults
// of the others. Settings of rules that do not exist are left out.
func Complete(set []Setting) []Setting {
	list := Defaults()
	for i, d := range list {
		if j := slices.IndexFunc(set, func(s Setting) bool { return s.Rule == d.Rule }); j >= 0 {
			list[i] = set[j]
		}
	}
	return list
}

// Check returns what is wrong with settings; nil: nothing. It joins a *telematics.FieldError for
// each field, by its place in the list: rules[0].levels[1].limit.
func Check(settings []Setting) error {
	var found []error
	problem := func(field, message string, args ...any) {
		found = append(found, &telematics.FieldError{Field: field, Message: fmt.Sprintf(message, args...)})
	}
	named := map[Rule]bool{}
	for i, s := range settings {
		at := func(field string) string { return fmt.Sprintf("rules[%d].%s", i, field) }
		d := s.Rule.definition()
		if d.Rule != s.Rule || named[s.Rule] {
			problem(at("rule"), "must be the name of a rule, once")
			continue
		}
		named[s.Rule] = true
		if s.For < 0 || s.For > maxFor || s.For%time.Second != 0 {
			problem(at("for_s"), "must be a whole number from 0 to %d", int(maxFor.Seconds()))
		}
		d.checkLevels(s.Levels, at, problem)
	}
	return errors.Join(found...)
}

func (d definition) checkLevels(levels []Level, at func(string) string, problem func(field, message string, args ...any)) {
	if len(levels) == 0 || d.unit == "" && len(levels) > 1 {
		problem(at("levels"), "must have one level, or one for each severity where the rule has limits")
		return
	}
	for i, l := range levels {
		field := func(name string) string { return at(fmt.Sprintf("levels[%d].%s", i, name)) }
		rank := slices.Index(Severities, l.Severity)
		if rank < 0 || i > 0 && rank <= slices.Index(Severities, levels[i-1].Severity) {
			problem(field("severity"), "must be info, warning or critical, the mildest first")
		}
		switch {
		case (l.Limit == nil) != (d.unit == ""):
			problem(field("limit"), "must be there if the rule has limits, and not otherwise")
		case l.Limit == nil:
		case !(*l.Limit >= d.least && *l.Limit <= d.most):
			problem(field("limit"), "must be from %g to %g %s", d.least, d.most, d.unit)
		case i > 0 && levels[i-1].Limit != nil && !d.isWorse(*l.Limit, *levels[i-1].Limit):
			problem(field("limit"), "must be worse than that of the level before")
		}
	}
}

func (l limits) isWorse(limit, than float64) bool {
	if l.below {
		return limit < than
	}
	return limit > than
}
