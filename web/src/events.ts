// One stream for all tabs: browsers open six connections to a host and no more.
const ports: MessagePort[] = [];
const stream = new EventSource("/events");
stream.onmessage = (event) => {
  for (const port of ports) port.postMessage(event.data);
};
self.addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port) ports.push(port);
});
