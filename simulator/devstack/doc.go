// Package devstack runs the servers of a whole development world on this machine: an MQTT broker, Redis and PostgreSQL.
//
// Each comes in the form that its purpose needs, and both forms of a server have the same surface (URLs, Close):
//
//	          in this process      as a child process
//	MQTT      StartMQTT            StartMosquitto
//	Redis     StartMiniredis       StartRedis
//	SQL                            StartPostgres
//
// The embedded broker obeys the access files of the production broker, so what the tests learn about one holds for the other;
// package mosquitto attacks both. The children can be frozen, killed and restarted on the same port, which is how outages are
// staged. All listen on loopback alone, and none outlives its parent: the kernel ends a child whose parent was killed.
//
// The production service never links this package.
package devstack
