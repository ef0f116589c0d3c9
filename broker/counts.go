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
	answersLate       = "answers_late"             // of those: to one that was believed over
	answersNeverSent  = "answers_never_sent"       // of those: to a command that is not known to have left
	answersOverruling = "answers_overruling"       // of those: to a command that the unit had rejected
	answersIdle       = "answers_idle"             // duplicates, or to no command of that unit
	answersMalformed  = "answers_malformed"        // not readable
	answersTooLarge   = "answers_too_large"        // over 64 KiB
	answersRetained   = "answers_retained"         // retained ones are dropped [ACK-4]
	answersDropped    = "answers_dropped"          // did not fit into the queue
	answersLimited    = "answers_limited"          // beyond the unit's allowance, and not asked for as far as is known
	answersRecalled   = "answers_recalled"         // results in reports that were looked into
	recallsDropped    = "answers_recalled_dropped" // of those: did not fit, and come again
	answersAhead      = "answers_clock_behind"     // rejections because a command was dated ahead of the unit's clock
	clockAlarms       = "clock_alarms"             // of those: shortly after another unit's; our clock may be wrong
	clockWrong        = "clock_wrong"              // times that this instance's clock was found wrong
	answersLost       = "answers_lost"             // could not be written down; the unit repeats them
	answersUnrecorded = "answers_unrecorded"       // to commands that are not on record: a failover or a restore has lost them
	reportsTaken      = "reports_taken"            // reports read from the MQTT broker
	reportsMalformed  = "reports_malformed"        // not readable at all
	reportsTooLarge   = "reports_too_large"        // over 64 KiB [TEL-4]
	reportsRetained   = "reports_retained"         // retained ones are dropped [ACK-4]
	reportsDropped    = "reports_dropped"          // did not fit into the queue
	reportsLimited    = "reports_limited"          // beyond the unit's allowance
	reportsMerged     = "reports_merged"           // merged into what is known of their vehicles
	fieldsDropped     = "report_fields_dropped"    // unsound parts of sound reports [TEL-4]
	fieldsWrongType   = "report_fields_type"       // of those: not of the field's JSON type
	fieldsOutOfRange  = "report_fields_range"      // of those: a number, length or time that cannot be
	fieldsUnknownWord = "report_fields_word"       // of those: none of the field's words
	timesReplaced     = "report_times_replaced"    // of those: the report's own time, for the receiver's [TEL-5]
	presenceTaken     = "presence_taken"           // presence messages read
	presenceMalformed = "presence_malformed"       // not readable
	presenceTooLarge  = "presence_too_large"       // over 64 KiB
	presenceGhosts    = "presence_ghosts"          // last wills of older connections, ignored [PRE-1]
	presenceOvertaken = "presence_overtaken"       // older than what is known, ignored [PRE-1]
	presenceDropped   = "presence_dropped"         // did not fit into the queue; presence is subscribed to again
	presenceLimited   = "presence_limited"         // beyond the unit's allowance
	unitsUnknown      = "units_unknown"            // observations of units without a vehicle
	strangersDropped  = "units_unknown_dropped"    // of those: more units at once than are kept
	unitsForeign      = "units_foreign"            // observations in another protocol than the record's
	observationsLost  = "observations_lost"        // could not be written down
	commandsSwept     = "commands_swept"           // settled for an owner that was gone
	refusalsOmitted   = "refusals_not_recorded"    // refusals beyond the bound of their actors in the history
	eventsTold        = "events_told"              // events added to the log
	eventsDropped     = "events_dropped"           // did not fit into the queue, or the log was away; who follows is told
)

var counted = []string{
	commandsSent, publications, publishFailures,
	answersTaken, answersSettled, answersLate, answersNeverSent, answersOverruling, answersIdle, answersMalformed, answersTooLarge, answersRetained, answersDropped, answersLimited, answersRecalled, recallsDropped, answersAhead, clockAlarms, clockWrong, answersLost, answersUnrecorded,
	reportsTaken, reportsMalformed, reportsTooLarge, reportsRetained, reportsDropped, reportsLimited, reportsMerged,
	fieldsDropped, fieldsWrongType, fieldsOutOfRange, fieldsUnknownWord, timesReplaced,
	presenceTaken, presenceMalformed, presenceTooLarge, presenceGhosts, presenceOvertaken, presenceDropped, presenceLimited, unitsUnknown, strangersDropped, unitsForeign, observationsLost, commandsSwept,
	refusalsOmitted, eventsTold, eventsDropped,
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
