package fault

// Alerts are the shipped alerts of a kind of fault, separated by spaces: those that must fire in a
// round with this fault alone, and those that may, as its consequences.
type Alerts struct{ Must, May string }

// Always may fire in any round: some cars are silent or slow, and some callers have no patience, so
// that about one command in twenty is unknown at rest.
const Always = "MotorpoolCommandsUnknown"

// failing are alerts about commands, which have any reason.
const failing = " MotorpoolCommandsUnavailable MotorpoolCommandsFailing MotorpoolMessagesDropped"

// lost are alerts about answers to commands that Postgres has lost.
const lost = " MotorpoolAnswersUnrecorded MotorpoolAnswerInvented"

// AlertsOf has an entry for each kind of fault that fires an alert. The others fire none.
var AlertsOf = map[string]Alerts{
	"instance killed":  {Must: "MotorpoolInstanceDown", May: failing},
	"instance frozen":  {Must: "MotorpoolInstanceDown", May: failing},
	ClockAhead:         {Must: "MotorpoolClockWrong MotorpoolNotReady", May: "MotorpoolClockSkew" + failing},
	"mosquitto killed": {Must: "MotorpoolMQTTDown MotorpoolCommandsUnavailable", May: failing},
	"mosquitto frozen": {Must: "MotorpoolMQTTDown MotorpoolCommandsUnavailable", May: failing},
	"redis killed":     {Must: "MotorpoolNotReady MotorpoolCommandsFailing", May: failing},
	"redis frozen":     {Must: "MotorpoolNotReady MotorpoolCommandsFailing", May: failing},
	"postgres killed": {
		Must: "MotorpoolNotReady MotorpoolCommandsUnavailable MotorpoolOutboxGrowing",
		May:  "MotorpoolIngestBehind" + failing,
	},
	"postgres frozen": {
		Must: "MotorpoolNotReady MotorpoolCommandsUnavailable",
		May:  "MotorpoolOutboxGrowing MotorpoolIngestBehind MotorpoolPostgresHanging" + failing,
	},
	FullDisk: {
		Must: "MotorpoolCommandsUnavailable",
		May:  "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolIngestBehind" + failing,
	},

	"postgres read-only": {
		Must: "MotorpoolNotReady MotorpoolCommandsUnavailable",
		May:  "MotorpoolOutboxGrowing MotorpoolIngestBehind" + failing,
	},
	"vehicles locked":      {Must: "MotorpoolRowsLocked", May: "MotorpoolOutboxGrowing MotorpoolIngestBehind" + failing},
	"table locked":         {May: "MotorpoolRowsLocked MotorpoolIngestBehind"},
	"instance log blocked": {Must: "MotorpoolLogLost"},
	"subscription deaf":    {Must: "MotorpoolMQTTDown", May: failing},
	"foreign signing key":  {Must: "MotorpoolNotReady", May: failing},

	PostgresAsync: {
		Must: "MotorpoolAnswersUnrecorded",
		May:  "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolStandbyAsynchronous" + failing,
	},
	PostgresSync:  {May: "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolPostgresHanging" + failing},
	RedisSentinel: {May: "MotorpoolNotReady" + failing},
	RedisCluster:  {May: "MotorpoolNotReady" + failing},
	// Postgres's clock is looked at every 30 s.
	LeapTo2100:                           {Must: "MotorpoolClockWrong", May: "MotorpoolPostgresClockLeapt" + failing},
	LeapADay:                             {Must: "MotorpoolClockWrong", May: "MotorpoolPostgresClockLeapt" + failing},
	MonthsEnd:                            {May: "MotorpoolPostgresClockLeapt" + failing},
	"instances killed and redis emptied": {May: "MotorpoolInstanceDown MotorpoolAbsent MotorpoolNotReady" + failing},
	"presence stored late": {
		May: "MotorpoolMQTTDown MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolIngestBehind" + failing,
	},
	"installation copied": {Must: "MotorpoolOtherInstallation"},
	"standby gone": {
		Must: "MotorpoolPostgresHanging MotorpoolCommandsUnavailable",
		May:  "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolIngestBehind" + failing,
	},
	"commit waits cancelled": {
		Must: "MotorpoolCommitsNotReplicated",
		May:  "MotorpoolOutboxGrowing MotorpoolPostgresHanging MotorpoolNotReady" + lost + failing,
	},
	"two primaries": {
		Must: "MotorpoolFormerPrimary",
		May:  "MotorpoolInstanceDown MotorpoolNotReady MotorpoolOutboxGrowing" + lost + failing,
	},

	"commands damaged": {May: "MotorpoolCommandsFailing"},
	"car clocks wrong": {May: "MotorpoolClockWrong MotorpoolCommandsFailing"},

	"answers invented": {Must: "MotorpoolAnswerInvented"},
}

// Unprovoked are the shipped alerts that no fault must fire, and why. Their rules are tested with
// invented series, in deploy/prometheus/rules_test.yml.
var Unprovoked = map[string]string{
	"MotorpoolAbsent":                "no fault ends all instances",
	"MotorpoolAgencyKeyExpires":      "a date in the future",
	"MotorpoolAnswerContradicts":     "no simulated unit executes what it has rejected: broker tests have such an answer",
	"MotorpoolCertificateExpires":    "a date in the future",
	"MotorpoolCertificateUnreadable": "instances have no TLS here",
	"MotorpoolChargesForOperator":    "the round of money has no Prometheus",
	"MotorpoolChargesUnknown":        "the round of money has no Prometheus",
	"MotorpoolClockSkew":             "clocks are ahead by more than the second at which an instance stops",
	"MotorpoolCommandsFailingSlow":   "the load is too high for it: MotorpoolCommandsFailing comes first",
	"MotorpoolCommandsNotMoved":      "needs hours that the service counts",
	"MotorpoolCommandsUnknown":       "about one command in twenty is unknown at rest: see Always",
	"MotorpoolConnectionsRefused":    "callers open fewer connections than an instance takes",
	"MotorpoolIngestBehind":          "needs a minute that the service counts, or more reports than the cars send",
	"MotorpoolMQTTMemory":            "would need the memory of the machine",
	"MotorpoolMQTTShardDown":         "the round of shards has no Prometheus",
	"MotorpoolPanics":                "no fault makes the service panic",
	"MotorpoolMessagesDropped":       "the queues are larger than what the load fills for certain",
	"MotorpoolMessagesUnsound":       "units of the round send what is valid",
	"MotorpoolPartitionsEnding":      "needs days",
	"MotorpoolPostgresClockLeapt":    "Postgres's clock is looked at every 30 s, and leaps for less",
	"MotorpoolPaymentsRefused":       "the round of money has no Prometheus",
	"MotorpoolPaymentsUnrecorded":    "the round of money has no Prometheus",
	"MotorpoolSigningKeyOld":         "needs a year",
	"MotorpoolSigningKeysDiffer":     "needs a fault of 15 minutes, 90 s here: MotorpoolNotReady comes first",
	"MotorpoolStandbyAsynchronous":   "needs a fault of 10 minutes, a minute here",
}
