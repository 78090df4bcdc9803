"use strict";(()=>{var t=[],o=new EventSource("/events");o.onmessage=e=>{for(let s of t)s.postMessage(e.data)};self.addEventListener("connect",e=>{let s=e.ports[0];s&&t.push(s)});})();
