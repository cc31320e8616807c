// Search without a server: pages opened as files may not start workers, so the search runs in a hidden frame instead,
// with the two functions of a worker that it uses.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.ready = new Promise((resolve) => {
        frame.onload = () => {
          this.inside = frame.contentWindow;
          this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          this.inside.importScripts = (...urls) =>
            urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
          this.load(url).then(resolve);
        };
      });
      document.body.appendChild(frame);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        this.inside.document.body.appendChild(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
