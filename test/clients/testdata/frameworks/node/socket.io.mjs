// Two socket.io servers with the adapter: what one sends reaches the clients of the other.
import http from "node:http";
import { createAdapter } from "@socket.io/redis-adapter";
import { Server } from "socket.io";
import { io } from "socket.io-client";
import { assert, connect, until } from "./common.mjs";

/** Returns a socket.io server with connections of its own. */
async function serve() {
  const server = http.createServer();
  const sockets = new Server(server, { adapter: createAdapter(await connect(), await connect()) });
  sockets.on("connection", (socket) => socket.on("join", async (room, done) => done(await socket.join(room))));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { sockets, url: `http://127.0.0.1:${server.address().port}` };
}

/** Returns a connected client and the messages that it gets. */
async function join(server, room) {
  const client = io(server.url, { transports: ["websocket"] });
  const messages = [];
  client.on("message", (text) => messages.push(text));
  client.on("question", (answer) => answer(room));
  await new Promise((resolve) => client.emit("join", room, resolve));
  return { client, messages };
}

const here = await serve(), there = await serve();
await until("the servers know each other", async () => (await here.sockets.of("/").adapter.serverCount()) === 2);
const ann = await join(here, "red"), bob = await join(there, "red"), eve = await join(there, "blue");

here.sockets.emit("message", "to all");
await until("all get it", () => [ann, bob, eve].every((each) => each.messages.includes("to all")));
here.sockets.to("red").emit("message", "to red");
there.sockets.to("blue").emit("message", "to blue");
await until("rooms get theirs", () =>
  ann.messages.includes("to red") && bob.messages.includes("to red") && eve.messages.includes("to blue"));
assert.ok(!eve.messages.includes("to red") && !ann.messages.includes("to blue") && !bob.messages.includes("to blue"));

assert.equal((await here.sockets.fetchSockets()).length, 3);
assert.deepEqual((await here.sockets.timeout(5000).emitWithAck("question")).sort(), ["blue", "red", "red"]);
there.sockets.on("ping", (word, answer) => answer(word + "!"));
assert.deepEqual(await here.sockets.serverSideEmitWithAck("ping", "hello"), ["hello!"]);
here.sockets.in("blue").disconnectSockets(true);
await until("the client of the other server is disconnected", () => eve.client.disconnected);
