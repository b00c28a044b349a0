// From file:// a browser starts no worker, and the theme's search is one: there it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => {
        const message = new MessageEvent("message", { data })
        this.dispatchEvent(message)
        this.onmessage?.(message)
      }
      this.inside.importScripts = (...urls) => Promise.all(urls.map(each => this.load(each)))
      this.ready = this.load(url)
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script")
        Object.assign(script, { src: new URL(url, document.baseURI), onload: resolve, onerror: reject })
        this.inside.document.head.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })))
    }

    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
