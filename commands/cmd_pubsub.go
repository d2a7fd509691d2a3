package commands

import (
	"strings"

	"mayfly/commands/redisfmt"
)

// notKeys is the Access of channels, which COMMAND lists among the keys for the sake of clusters.
const notKeys = "not_key"

var pubsubCommands = []Command{
	{
		Name: "psubscribe", Syntax: "pattern [pattern ...]", Since: "2.0.0",
		Summary: "Listen for messages published to channels matching the given patterns",
		Differs: "The pattern is bounded as that of `KEYS`",
		Flags:   PubSub | NoScript | Loading | Stale | AllowSubscribed | OnNode,
		Parse:   func(in *Input) (Run, error) { return parseSubscribe(in, subPattern, "psubscribe") },
	},
	{
		Name: "publish", Syntax: "channel message", Since: "2.0.0", Summary: "Post a message to a channel",
		Differs: "The message leaves when all earlier commands of the sender are committed, in their order",
		Flags:   PubSub | Loading | Stale | Fast | Publishes | OnNode,
		Parse:   func(in *Input) (Run, error) { return parsePublish(in, subChannel) },
	},
	pubsubCommand,
	{
		Name: "punsubscribe", Syntax: "[pattern [pattern ...]]", Since: "2.0.0",
		Summary: "Stop listening for messages posted to channels matching the given patterns",
		Flags:   PubSub | NoScript | Loading | Stale | AllowSubscribed | OnNode,
		Parse:   noParse(runUnsubscribe(subPattern, "punsubscribe")),
	},
	{
		Name: "spublish", Syntax: "shardchannel message", Since: "7.0.0", Summary: "Post a message to a shard channel",
		Flags: PubSub | Loading | Stale | Fast | Publishes | OnNode, Keys: OneKey, Access: notKeys,
		Parse: func(in *Input) (Run, error) { return parsePublish(in, subShard) },
	},
	{
		Name: "ssubscribe", Syntax: "shardchannel [shardchannel ...]", Since: "7.0.0",
		Summary: "Listen for messages published to the given shard channels",
		Flags:   PubSub | NoScript | Loading | Stale | AllowSubscribed | OnNode, Keys: AllKeys, Access: notKeys,
		Parse: func(in *Input) (Run, error) { return parseSubscribe(in, subShard, "ssubscribe") },
	},
	{
		Name: "subscribe", Syntax: "channel [channel ...]", Since: "2.0.0", Summary: "Listen for messages published to the given channels",
		Flags: PubSub | NoScript | Loading | Stale | AllowSubscribed | OnNode,
		Parse: func(in *Input) (Run, error) { return parseSubscribe(in, subChannel, "subscribe") },
	},
	{
		Name: "sunsubscribe", Syntax: "[shardchannel [shardchannel ...]]", Since: "7.0.0",
		Summary: "Stop listening for messages posted to the given shard channels",
		Flags:   PubSub | NoScript | Loading | Stale | AllowSubscribed | OnNode, Keys: AllKeys, Access: notKeys,
		Parse: noParse(runUnsubscribe(subShard, "sunsubscribe")),
	},
	{
		Name: "unsubscribe", Syntax: "[channel [channel ...]]", Since: "2.0.0",
		Summary: "Stop listening for messages posted to the given channels",
		Flags:   PubSub | NoScript | Loading | Stale | AllowSubscribed | OnNode,
		Parse:   noParse(runUnsubscribe(subChannel, "unsubscribe")),
	},
}

// pubsubCommand lists subscriptions.
var pubsubCommand = Command{
	Name: "pubsub", Since: "2.8.0", Summary: "A container for Pub/Sub commands",
	Sub: []Command{
		{
			Name: "channels", Syntax: "[pattern]", Summary: "List active channels",
			Differs: "The pattern is bounded as that of `KEYS`",
			Flags:   PubSub | Loading | Stale | OnNode, Parse: func(in *Input) (Run, error) { return parseActiveNames(in, subChannel) },
		},
		helpRow("pubsub", "6.2.0"),
		{
			Name: "numpat", Summary: "Get the count of unique patterns pattern subscriptions",
			Flags: PubSub | Loading | Stale | OnNode,
			Parse: noParse(func(x *Context) Reply {
				n := 0
				x.Engine.Broker.eachActive(subPattern, func(string) bool { n++; return true })
				return Count(n)
			}),
		},
		{
			Name: "numsub", Syntax: "[channel [channel ...]]", Summary: "Get the count of subscribers for channels",
			Flags: PubSub | Loading | Stale | OnNode, Parse: noParse(runNumSub(subChannel)),
		},
		{
			Name: "shardchannels", Syntax: "[pattern]", Since: "7.0.0", Summary: "List active shard channels",
			Differs: "As `PUBSUB CHANNELS`",
			Flags:   PubSub | Loading | Stale | OnNode, Parse: func(in *Input) (Run, error) { return parseActiveNames(in, subShard) },
		},
		{
			Name: "shardnumsub", Syntax: "[shardchannel [shardchannel ...]]", Since: "7.0.0",
			Summary: "Get the count of subscribers for shard channels",
			Flags:   PubSub | Loading | Stale | OnNode, Parse: noParse(runNumSub(subShard)),
		},
	},
}

// maxChannel is the largest size in bytes of a channel's name. Patterns are matched against it.
const maxChannel = 1 << 16

// checkSubscription returns an error if the name of a channel, or a pattern, is too long.
func checkSubscription(kind subscriptionKind, name string) error {
	if kind == subPattern {
		if err := checkPattern(name); err != nil {
			return err
		}
	}
	if len(name) > maxChannel {
		return errorf(errTooLongName, "channel", len(name), maxChannel)
	}
	return nil
}

// parseSubscribe parses SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE. Each channel gets a reply with the number
// of subscriptions after it.
func parseSubscribe(in *Input, kind subscriptionKind, word string) (Run, error) {
	names := in.Args[1:]
	for _, name := range names {
		if err := checkSubscription(kind, name); err != nil {
			return nil, err
		}
	}
	return func(x *Context) Reply {
		if kind == subShard && x.Session.multi.open { // the other kinds are legal
			return Fail(errShardInMulti)
		}
		kept := make([]string, len(names))
		for i, name := range names {
			kept[i] = strings.Clone(name)
		}
		replies := make([]Reply, 0, len(names))
		err := x.Engine.Broker.subscribe(x.Session, kind, kept, func(name string) {
			replies = append(replies, confirmation(x.Session, kind, word, Bulk(name)))
		})
		if err != nil {
			return Fail(err)
		}
		if ks := x.Engine.Keyspace(); ks != nil {
			ks.ListenersChanged()
		}
		return x.announceSubscriptions(several(replies))
	}, nil
}

// runUnsubscribe returns the Run of UNSUBSCRIBE, PUNSUBSCRIBE and SUNSUBSCRIBE. Without arguments they end all
// subscriptions of their kind.
func runUnsubscribe(kind subscriptionKind, word string) Run {
	return func(x *Context) Reply {
		list := x.Input.Args[1:]
		if len(list) == 0 {
			list = x.Engine.Broker.names(x.Session, kind)
		}
		if len(list) == 0 {
			return several([]Reply{confirmation(x.Session, kind, word, Null)})
		}
		replies := make([]Reply, 0, len(list))
		x.Engine.Broker.unsubscribe(x.Session, kind, list, func(name string) {
			replies = append(replies, confirmation(x.Session, kind, word, Bulk(name)))
		})
		x.Engine.Broker.announce()
		x.close = x.close || x.Session.deposed.Load() && !x.Session.inSubscribedMode() // see disconnectLed
		return several(replies)
	}
}

// confirmation is the reply to a subscription or its end, with the session's number of subscriptions.
// Channels and patterns count together.
func confirmation(s *Session, kind subscriptionKind, word string, name Reply) Reply {
	n := s.subscribed[kind]
	if kind != subShard {
		n = s.subscribed[subChannel] + s.subscribed[subPattern]
	}
	return push(Bulk(word), name, Count(n))
}

func several(replies []Reply) Reply { return Reply{Kind: KindSeveral, Elems: replies} }

// parsePublish parses PUBLISH and SPUBLISH. Within a transaction the message shares its fate. Elsewhere
// the message waits for the client's earlier commands, as in Redis, but leaves even if their commit
// fails.
func parsePublish(in *Input, kind subscriptionKind) (Run, error) {
	channel, text := in.Args[1], in.Args[2]
	if err := checkSubscription(kind, channel); err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		n, ok := x.Input.receivers, x.Input.matched
		if !ok {
			if n, ok = x.countReceivers(kind, channel); !ok {
				return Fail(errAbandoned)
			}
		}
		if n > 0 || x.Engine.Broker.remote != nil {
			x.publish(event{
				kind: kind, channel: strings.Clone(channel), text: strings.Clone(text), bound: x.Session.multi.open,
			})
		}
		return Count(n)
	}, nil
}

func parseActiveNames(in *Input, kind subscriptionKind) (Run, error) {
	all, pattern := false, ""
	switch len(in.Args) {
	case 2:
		all = true // unlike the pattern *, includes the channel with the empty name
	case 3:
		pattern = in.Args[2]
	default:
		return nil, errorf(errSubcommandCall, shown(in.Args[1]), "PUBSUB")
	}
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	compiled := redisfmt.Compile(pattern)
	return func(x *Context) Reply {
		names := []Reply{}
		watch := x.watchClient()
		x.Engine.Broker.eachActive(kind, func(name string) bool {
			if all || compiled.Match(name) {
				names = append(names, Bulk(name))
			}
			return !watch.abandoned(len(name))
		})
		if x.abandoned {
			return Fail(errAbandoned)
		}
		return Array(names...)
	}, nil
}

func runNumSub(kind subscriptionKind) Run {
	return func(x *Context) Reply {
		channels := x.Input.Args[2:]
		pairs := make([]Reply, 0, 2*len(channels))
		for _, channel := range channels {
			pairs = append(pairs, Bulk(channel), Count(x.Engine.Broker.countSubscribers(kind, channel)))
		}
		return Array(pairs...)
	}
}
