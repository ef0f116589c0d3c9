package alerts

import "time"

// Rule is the name of a condition that opens an alert. Other programs rely on the names.
type Rule string

// The rules, by what they are about.
const (
	Battery12VLow Rule = "battery_12v_low"
	EnergyLow     Rule = "energy_low"

	Silent    Rule = "silent"     // no contact, although its reports are due
	Deaf      Rule = "deaf"       // it reports, but shows no sign that it receives commands
	UnitClock Rule = "unit_clock" // its clock is wrong

	MovedWithoutBooking    Rule = "moved_without_booking"
	IgnitionWithoutBooking Rule = "ignition_without_booking"
	LeftOpen               Rule = "left_open"
	OutsideArea            Rule = "outside_area"
	ParkedForbidden        Rule = "parked_forbidden"

	Overdue          Rule = "overdue"
	StartedNotOpened Rule = "started_not_opened"
	ChargeFailed     Rule = "charge_failed"

	UnitAlarm   Rule = "unit_alarm" // an impact, tow, tamper or jamming that the unit announced
	TroubleCode Rule = "trouble_code"
	Lamp        Rule = "lamp"
	ServiceDue  Rule = "service_due"

	CommandUnknown      Rule = "command_unknown"
	CommandContradicted Rule = "command_contradicted"
	UnitRejects         Rule = "unit_rejects"

	// MassAccess is about a person who opened or located many vehicles, not about a vehicle.
	MassAccess Rule = "mass_access"
)

// Severity says how soon a person has to look.
type Severity string

const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Level is a severity with the limit from which on a rule has it. The rule says in which unit the
// limit is, and on which side of it the condition is true. A rule without a limit has nil.
type Level struct {
	Severity Severity
	Limit    *float64
}

// Setting is how an agency wants a rule.
type Setting struct {
	Rule   Rule
	Off    bool
	For    time.Duration // for how long the condition has to hold
	Levels []Level       // the mildest first
}
