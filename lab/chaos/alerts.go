package main

import "motorpool/lab/chaos/alerts"

// lost are alerts about answers to commands that Postgres has lost.
const lost = " MotorpoolAnswersUnrecorded MotorpoolAnswerInvented"

// leapt is about Postgres's clock, set back by more than a minute, or ahead by more than an hour.
const leapt = " MotorpoolPostgresClockLeapt"

// clockWrong are those of an instance with a wrong clock, which leaves the MQTT broker.
var clockWrong = alerts.Of{
	Must: "MotorpoolClockWrong MotorpoolNotReady", May: "MotorpoolClockSkew MotorpoolMQTTDown MotorpoolIngestBehind" + alerts.Failing,
}

// AlertsOf has an entry for each kind of fault that fires an alert. The others fire none.
var AlertsOf = map[string]alerts.Of{
	"instance killed":  {Must: "MotorpoolInstanceDown", May: alerts.Failing},
	"instance frozen":  {Must: "MotorpoolInstanceDown", May: alerts.Failing},
	ClockAhead:         clockWrong,
	ClockBehind:        clockWrong,
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

	"instance suspended":    {May: "MotorpoolInstanceDown MotorpoolNotReady MotorpoolClockWrong MotorpoolClockSkew" + alerts.Failing},
	"postgres clock behind": {Must: clockWrong.Must, May: clockWrong.May + leapt},
	"all clocks behind":     {May: "MotorpoolClockWrong" + leapt + alerts.Failing},
	"machine suspended": {
		May: "MotorpoolInstanceDown MotorpoolAbsent MotorpoolNotReady MotorpoolClockWrong MotorpoolMQTTDown" + leapt + alerts.Failing,
	},

	PostgresSync: {May: "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolPostgresHanging" + alerts.Failing},
	PostgresAsync: {
		Must: "MotorpoolAnswersUnrecorded",
		// Claims of beats that are lost look like those of another installation for some seconds.
		May: "MotorpoolAnswerInvented MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolStandbyAsynchronous " +
			"MotorpoolOtherInstallation" + alerts.Failing,
	},
	RedisSentinel: {May: "MotorpoolNotReady" + alerts.Failing},
	RedisCluster:  {May: "MotorpoolNotReady" + alerts.Failing},

	RollingRestart: {May: "MotorpoolInstanceDown MotorpoolNotReady" + alerts.Failing},
	ShardKilled:    {Must: "MotorpoolMQTTShardDown", May: alerts.Failing},

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
