package main

import "motorpool/lab/chaos/alerts"

// lost are alerts about answers to commands that Postgres has lost.
const lost = " MotorpoolAnswersUnrecorded MotorpoolAnswerInvented"

// AlertsOf has an entry for each kind of fault that fires an alert. The others fire none.
var AlertsOf = map[string]alerts.Of{
	"instance killed":  {Must: "MotorpoolInstanceDown", May: alerts.Failing},
	"instance frozen":  {Must: "MotorpoolInstanceDown", May: alerts.Failing},
	ClockAhead:         {Must: "MotorpoolClockWrong MotorpoolNotReady", May: "MotorpoolClockSkew" + alerts.Failing},
	"mosquitto killed": {Must: "MotorpoolMQTTDown MotorpoolCommandsUnavailable", May: alerts.Failing},
	"mosquitto frozen": {Must: "MotorpoolMQTTDown MotorpoolCommandsUnavailable", May: alerts.Failing},
	"redis killed":     {Must: "MotorpoolNotReady MotorpoolCommandsFailing", May: alerts.Failing},
	"redis frozen":     {Must: "MotorpoolNotReady MotorpoolCommandsFailing", May: alerts.Failing},
	"postgres killed": {
		Must: "MotorpoolNotReady MotorpoolCommandsUnavailable MotorpoolOutboxGrowing",
		May:  "MotorpoolIngestBehind" + alerts.Failing,
	},
	"postgres frozen": {
		Must: "MotorpoolNotReady MotorpoolCommandsUnavailable",
		May:  "MotorpoolOutboxGrowing MotorpoolIngestBehind MotorpoolPostgresHanging" + alerts.Failing,
	},
	FullDisk: {
		Must: "MotorpoolCommandsUnavailable",
		May:  "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolIngestBehind" + alerts.Failing,
	},

	"postgres read-only": {
		Must: "MotorpoolNotReady MotorpoolCommandsUnavailable",
		May:  "MotorpoolOutboxGrowing MotorpoolIngestBehind" + alerts.Failing,
	},
	"vehicles locked":      {Must: "MotorpoolRowsLocked", May: "MotorpoolOutboxGrowing MotorpoolIngestBehind" + alerts.Failing},
	"table locked":         {May: "MotorpoolRowsLocked MotorpoolIngestBehind"},
	"instance log blocked": {Must: "MotorpoolLogLost"},
	"subscription deaf":    {Must: "MotorpoolMQTTDown", May: alerts.Failing},
	"foreign signing key":  {Must: "MotorpoolNotReady", May: alerts.Failing},

	PostgresSync:  {May: "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolPostgresHanging" + alerts.Failing},
	RedisSentinel: {May: "MotorpoolNotReady" + alerts.Failing},
	RedisCluster:  {May: "MotorpoolNotReady" + alerts.Failing},
	// Postgres's clock is looked at every 30 s.
	LeapTo2100:                           {Must: "MotorpoolClockWrong", May: "MotorpoolPostgresClockLeapt" + alerts.Failing},
	LeapADay:                             {Must: "MotorpoolClockWrong", May: "MotorpoolPostgresClockLeapt" + alerts.Failing},
	MonthsEnd:                            {May: "MotorpoolClockWrong MotorpoolPostgresClockLeapt" + alerts.Failing},
	"instances killed and redis emptied": {May: "MotorpoolInstanceDown MotorpoolAbsent MotorpoolNotReady" + alerts.Failing},
	"presence stored late": {
		May: "MotorpoolMQTTDown MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolIngestBehind" + alerts.Failing,
	},
	"installation copied": {Must: "MotorpoolOtherInstallation"},
	"standby gone": {
		Must: "MotorpoolPostgresHanging MotorpoolCommandsUnavailable",
		May:  "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolIngestBehind" + alerts.Failing,
	},
	"commit waits cancelled": {
		Must: "MotorpoolCommitsNotReplicated",
		May:  "MotorpoolOutboxGrowing MotorpoolPostgresHanging MotorpoolNotReady" + lost + alerts.Failing,
	},
	"two primaries": {
		Must: "MotorpoolFormerPrimary",
		May:  "MotorpoolInstanceDown MotorpoolNotReady MotorpoolOutboxGrowing" + lost + alerts.Failing,
	},

	"commands damaged": {May: "MotorpoolCommandsFailing"},
	"car clocks wrong": {May: "MotorpoolClockWrong MotorpoolCommandsFailing"},

	"answers invented": {Must: "MotorpoolAnswerInvented"},
}

// Unprovoked are the shipped alerts that no fault must fire, and why. Their rules are tested with
// invented series, in deploy/prometheus/rules_test.yml.
var Unprovoked = map[string]string{
	"MotorpoolAbsent":                  "no fault ends all instances",
	"MotorpoolAgencyKeyExpires":        "a date in the future",
	"MotorpoolAlertsStale":             "needs four minutes: other alerts come first",
	"MotorpoolAnswerContradicts":       "no simulated unit executes what it has rejected: broker tests have such an answer",
	"MotorpoolCertificateExpires":      "a date in the future",
	"MotorpoolCertificateUnreadable":   "instances have no TLS here",
	"MotorpoolChargesForOperator":      "the round of money has no Prometheus",
	"MotorpoolChargesUnknown":          "the round of money has no Prometheus",
	"MotorpoolClockSkew":               "clocks are ahead by more than the second at which an instance stops",
	"MotorpoolCommandsFailingSlow":     "the load is too high for it: MotorpoolCommandsFailing comes first",
	"MotorpoolCommandsNotMoved":        "needs hours that the service counts",
	"MotorpoolCommandsUnknown":         "about one command in twenty is unknown at rest: see Always",
	"MotorpoolConnectionsRefused":      "callers open fewer connections than an instance takes",
	"MotorpoolIngestBehind":            "needs a minute that the service counts, or more reports than the cars send",
	"MotorpoolMQTTMemory":              "would need the memory of the machine",
	"MotorpoolMQTTShardDown":           "the round of shards has no Prometheus",
	"MotorpoolPanics":                  "no fault makes the service panic",
	"MotorpoolMessagesDropped":         "the queues are larger than what the load fills for certain",
	"MotorpoolMessagesUnsound":         "units of the round send what is valid",
	"MotorpoolPartitionsEnding":        "needs days",
	"MotorpoolPostgresClockLeapt":      "Postgres's clock is looked at every 30 s, and leaps for less",
	"MotorpoolPaymentsRefused":         "the round of money has no Prometheus",
	"MotorpoolAlertmanagerUnavailable": "the rounds set no --alertmanager-url",
	"MotorpoolPaymentsUnrecorded":      "the round of money has no Prometheus",
	"MotorpoolSigningKeyOld":           "needs a year",
	"MotorpoolSigningKeysDiffer":       "needs a fault of 15 minutes, 90 s here: MotorpoolNotReady comes first",
	"MotorpoolStandbyAsynchronous":     "needs a fault of 10 minutes, a minute here",
}
