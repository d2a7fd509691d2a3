package commands

// Families whose files have not come yet; each line goes when its file does.
var (
	stringCommands     []Command
	keyCommands        []Command
	expireCommands     []Command
	containerCommands  []Command
	documentCommands   []Command
	connectionCommands []Command
	serverCommands     []Command
)
