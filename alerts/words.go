package alerts

import (
	"fmt"
	"maps"
	"slices"
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

// unsaid are facts for programs: an amount in the smallest unit of its currency, an id, all kinds
// of alarms after the latest.
var unsaid = []string{"amount", "currency", "charge", "kinds"}

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
	var facts []string
	for _, name := range slices.Sorted(maps.Keys(a.Facts)) {
		if text := fact(a.Facts[name]); text != "" && !slices.Contains(unsaid, name) {
			facts = append(facts, strings.ReplaceAll(name, "_", " ")+" "+text)
		}
	}
	line := of + ": " + words[a.Rule]
	if len(facts) > 0 {
		line += " (" + strings.Join(facts, ", ") + ")"
	}
	return line
}

// fact returns a value as text; empty for one that does not fit into a line.
func fact(value any) string {
	switch value := value.(type) {
	case nil, map[string]any:
		return ""
	case []any:
		texts := make([]string, len(value))
		for i, v := range value {
			texts[i] = fact(v)
		}
		return strings.Join(texts, " ")
	}
	return fmt.Sprint(value)
}
