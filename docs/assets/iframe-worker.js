// The search of a page that was opened from disk: browsers start no worker from file:, so that its script
// runs in a hidden frame, whose messages come and go as a worker's do.

if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve())
      this.ready = this.load(url)
    }

    load(url) {
      const script = this.inside.document.createElement("script")
      script.src = new URL(url, document.baseURI)
      return new Promise((loaded, failed) => {
        script.onload = loaded
        script.onerror = failed
        this.inside.document.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {}
  }
  window.Worker = window.IFrameWorker
}
