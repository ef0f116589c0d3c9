package broker

import "expvar"

// Counts tells how often what happened in this instance since it started.
type Counts struct{ m expvar.Map }

func newCounts() *Counts {
	c := &Counts{}
	for _, name := range counted {
		c.m.Add(name, 0)
	}
	return c
}

// Names of counts. Each is present from the start, so that zero can be read.
const (
	commandsSent      = "commands_sent"            // commands published at least once
	publications      = "publications"             // messages handed to the MQTT client
	publishFailures   = "publish_failures"         // messages that it did not take
	answersTaken      = "answers_taken"            // answers read from the MQTT broker
	answersSettled    = "answers_settled"          // answers that settled a command
	answersLate       = "answers_late"             // of those: after the deadline
	answersNeverSent  = "answers_never_sent"       // of those: to a command that is not known to have left
	answersIdle       = "answers_idle"             // duplicates, or to no command of that unit
	answersMalformed  = "answers_malformed"        // not readable
	answersRetained   = "answers_retained"         // retained ones are dropped [ACK-4]
	answersDropped    = "answers_dropped"          // did not fit into the queue
	answersRecalled   = "answers_recalled"         // results in reports that were looked into
	recallsDropped    = "answers_recalled_dropped" // of those: did not fit, and come again
	answersLost       = "answers_lost"             // could not be written down; the unit repeats them
	reportsTaken      = "reports_taken"            // reports read from the MQTT broker
	reportsMalformed  = "reports_malformed"        // not readable at all
	reportsRetained   = "reports_retained"         // retained ones are dropped [ACK-4]
	reportsDropped    = "reports_dropped"          // did not fit into the queue
	reportsWritten    = "reports_written"          // reports written down
	fieldsDropped     = "report_fields_dropped"    // unsound parts of sound reports [TEL-4]
	presenceTaken     = "presence_taken"           // presence messages read
	presenceMalformed = "presence_malformed"       // not readable
	presenceDropped   = "presence_dropped"         // did not fit into the queue
	unitsUnknown      = "units_unknown"            // observations of units without a vehicle
	observationsLost  = "observations_lost"        // could not be written down
	commandsSwept     = "commands_swept"           // settled for an owner that was gone
)

var counted = []string{
	commandsSent, publications, publishFailures,
	answersTaken, answersSettled, answersLate, answersNeverSent, answersIdle, answersMalformed, answersRetained, answersDropped, answersRecalled, recallsDropped, answersLost,
	reportsTaken, reportsMalformed, reportsRetained, reportsDropped, reportsWritten, fieldsDropped,
	presenceTaken, presenceMalformed, presenceDropped, unitsUnknown, observationsLost, commandsSwept,
}

func (c *Counts) add(name string) { c.addN(name, 1) }

func (c *Counts) addN(name string, n int) { c.m.Add(name, int64(n)) }

// Get returns one count.
func (c *Counts) Get(name string) int64 {
	if v, ok := c.m.Get(name).(*expvar.Int); ok {
		return v.Value()
	}
	return 0
}

// All returns every count by name.
func (c *Counts) All() map[string]int64 {
	all := make(map[string]int64, len(counted))
	for _, name := range counted {
		all[name] = c.Get(name)
	}
	return all
}
