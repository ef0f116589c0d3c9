// Package brokertest has the contracts of the ports of package broker, as test suites that every
// implementation runs: [CommandsContract], [PendingTableContract], [TwinsContract],
// [ContactsContract] and [EventsContract]. [Memory] implements all ports without a server, for
// tests of the packages that use them.
//
// Only test files import it.
package brokertest
