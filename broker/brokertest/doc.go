// Package brokertest says what the ports of package broker promise, as tests that every
// implementation runs: [CommandsContract], [PendingTableContract], [TwinsContract],
// [ContactsContract] and [EventsContract]. [Memory] implements all of them without a server, for
// tests of what stands above the ports.
//
// Only test files import it.
package brokertest
