package alerts

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// words say what each rule has seen, after the name of the vehicle or person.
var words = map[Rule]string{
	Battery12VLow:          "12 V battery is low",
	EnergyLow:              "available, and low on energy",
	Silent:                 "silent: its reports are due",
	Deaf:                   "reports, but received none of the last commands",
	UnitClock:              "the clock of its unit is wrong",
	MovedWithoutBooking:    "moved without a booking",
	IgnitionWithoutBooking: "ignition on without a booking",
	LeftOpen:               "parked and free, but open",
	OutsideArea:            "outside the operating area",
	ParkedForbidden:        "parked where parking is forbidden",
	Overdue:                "not returned in time",
	StartedNotOpened:       "rental started, but the vehicle was never opened",
	ChargeFailed:           "a charge of its booking failed",
	UnitAlarm:              "alarm of its unit",
	TroubleCode:            "trouble code",
	Lamp:                   "warning lamp",
	ServiceDue:             "service is due",
	CommandUnknown:         "the result of a command is unknown",
	CommandContradicted:    "it contradicted the result of a command",
	UnitRejects:            "its unit rejects commands",
	MassAccess:             "opened or located many vehicles",
}

// Words returns the alert as one line for people: which vehicle or person, what, and what the rule
// saw.
func Words(a Alert) string {
	of := a.Plate
	switch {
	case a.Person != "":
		of = a.Person
	case of == "":
		of = fmt.Sprintf("vehicle %d", a.Vehicle)
	}
	line := of + ": " + words[a.Rule]
	if facts := seen(a); facts != "" {
		line += " (" + facts + ")"
	}
	return line
}

// saw is how the fact that matters most to a rule is said, and how where it is below zero; as it
// is, if nothing says how. Rules without one say enough.
var saw = map[Rule]struct{ fact, form, below string }{
	Battery12VLow:       {fact: "volts", form: "%s V"},
	EnergyLow:           {fact: "percent", form: "%s %%"},
	UnitClock:           {"ahead_s", "ahead by %s s", "behind by %s s"},
	MovedWithoutBooking: {fact: "metres", form: "%s m"},
	LeftOpen:            {fact: "open"},
	ParkedForbidden:     {fact: "area"},
	Overdue:             {fact: "reference"},
	StartedNotOpened:    {fact: "reference"},
	ChargeFailed:        {fact: "reference"},
	UnitAlarm:           {fact: "kind"},
	TroubleCode:         {fact: "codes"},
	Lamp:                {fact: "lamps"},
	ServiceDue:          {"km", "in %s km", "overdue by %s km"},
	CommandUnknown:      {fact: "action"},
	CommandContradicted: {fact: "action"},
	UnitRejects:         {fact: "action"},
	MassAccess:          {fact: "vehicles", form: "%s within an hour"},
}

// seen returns what the rule saw; empty: its words say all.
func seen(a Alert) string {
	said := saw[a.Rule]
	value := fact(a.Facts[said.fact])
	if value == "" {
		return ""
	}
	if words := kinds[value]; a.Rule == UnitAlarm && words != "" {
		return words
	}
	if past, is := strings.CutPrefix(value, "-"); is && said.below != "" {
		return fmt.Sprintf(said.below, past)
	}
	return fmt.Sprintf(cmp.Or(said.form, "%s"), value)
}

// fact returns a value as text; empty for none.
func fact(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case string:
		return strings.ReplaceAll(value, "_", " ")
	case []any:
		texts := make([]string, len(value))
		for i, v := range value {
			texts[i] = fact(v)
		}
		return strings.Join(texts, ", ")
	}
	return fmt.Sprint(value)
}
